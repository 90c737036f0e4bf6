//! The `stakeout-server` binary.

fn main() {
    println!("{}", env!("CARGO_PKG_VERSION"));
}
