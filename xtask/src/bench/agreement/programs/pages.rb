# kramdown turns texts into pages whose code Rouge colours, again and again, for bench agreement; stackprof watches the
# seconds after the warm-up.
#
# ruby pages.rb WARM_UP_S SECONDS OUT INTERVAL_US TEXT...

require "json"
require "kramdown"
require "rouge"
require "stackprof"

WARM_UP, SECONDS, OUT, INTERVAL, *NAMES = ARGV
TEXTS = NAMES.map { |name| File.read(name, encoding: "UTF-8") }

def page(text)
  Kramdown::Document.new(text, syntax_highlighter: "rouge", input: "kramdown").to_html
end

def work(seconds)
  clock = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }
  last = clock.call + seconds
  TEXTS.each { |text| page(text) } while clock.call < last
end

work(WARM_UP.to_f)
StackProf.start(mode: :cpu, interval: INTERVAL.to_i, raw: true)
$stdout.puts "begun"
$stdout.flush
work(SECONDS.to_f)
StackProf.stop
$stdout.puts "ended"
$stdout.flush
File.write(OUT, JSON.dump(StackProf.results))
# What was sampled last has its names as long as the process lives.
$stdin.read
