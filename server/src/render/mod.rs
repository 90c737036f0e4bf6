//! Turns the results of `query` into SVG, collapsed stacks, pprof and speedscope.
