# A known mix: of all units of work seven in ten are done at the end of the chain a1, a2, ... a12, three in ten at the end
# of b1, b2, ... b12. Time ends it, and never divides it.
#
# ruby mix.rb SECONDS MODE

TURNS = 2_000

# Methods of each kind of call, in a class of their own.
class Plain
  def a1(x)
    a2(x + 1) + 1
  end

  def a2(x)
    a3(x + 2) + 1
  end

  def a3(x)
    a4(x + 3) + 1
  end

  def a4(x)
    a5(x + 4) + 1
  end

  def a5(x)
    a6(x + 5) + 1
  end

  def a6(x)
    a7(x + 6) + 1
  end

  def a7(x)
    a8(x + 7) + 1
  end

  def a8(x)
    a9(x + 8) + 1
  end

  def a9(x)
    a10(x + 9) + 1
  end

  def a10(x)
    a11(x + 10) + 1
  end

  def a11(x)
    a12(x + 11) + 1
  end

  def a12(x)
    i = 0
    while i < TURNS
      x = (x * 31 + i) & 0xFFFFFF
      i += 1
    end
    x
  end

  def b1(x)
    b2(x + 1) + 1
  end

  def b2(x)
    b3(x + 2) + 1
  end

  def b3(x)
    b4(x + 3) + 1
  end

  def b4(x)
    b5(x + 4) + 1
  end

  def b5(x)
    b6(x + 5) + 1
  end

  def b6(x)
    b7(x + 6) + 1
  end

  def b7(x)
    b8(x + 7) + 1
  end

  def b8(x)
    b9(x + 8) + 1
  end

  def b9(x)
    b10(x + 9) + 1
  end

  def b10(x)
    b11(x + 10) + 1
  end

  def b11(x)
    b12(x + 11) + 1
  end

  def b12(x)
    i = 0
    while i < TURNS
      x = (x * 31 + i) & 0xFFFFFF
      i += 1
    end
    x
  end

  def a_deep(depth, x)
    depth > 1 ? a_deep(depth - 1, x + 1) : a12(x)
  end

  def b_deep(depth, x)
    depth > 1 ? b_deep(depth - 1, x + 1) : b12(x)
  end
end

# C calls back: each, map and sort_by are its own.
class Called
  def a1(x)
    [x].each { |one| x = a2(one) }
    x
  end

  def a2(x)
    [x].map { |one| a3(one) }.first
  end

  def a3(x)
    [x, x + 1].sort_by { |one| a4(one) }.first
  end

  def a4(x)
    [x].each { |one| x = a5(one) }
    x
  end

  def a5(x)
    [x].map { |one| a6(one) }.first
  end

  def a6(x)
    [x, x + 1].sort_by { |one| a7(one) }.first
  end

  def a7(x)
    [x].each { |one| x = a8(one) }
    x
  end

  def a8(x)
    [x].map { |one| a9(one) }.first
  end

  def a9(x)
    [x, x + 1].sort_by { |one| a10(one) }.first
  end

  def a10(x)
    [x].each { |one| x = a11(one) }
    x
  end

  def a11(x)
    [x].map { |one| a12(one) }.first
  end

  def a12(x)
    i = 0
    while i < TURNS / 8
      x = (x * 31 + i) & 0xFFFFFF
      i += 1
    end
    x
  end

  def b1(x)
    [x].each { |one| x = b2(one) }
    x
  end

  def b2(x)
    [x].map { |one| b3(one) }.first
  end

  def b3(x)
    [x, x + 1].sort_by { |one| b4(one) }.first
  end

  def b4(x)
    [x].each { |one| x = b5(one) }
    x
  end

  def b5(x)
    [x].map { |one| b6(one) }.first
  end

  def b6(x)
    [x, x + 1].sort_by { |one| b7(one) }.first
  end

  def b7(x)
    [x].each { |one| x = b8(one) }
    x
  end

  def b8(x)
    [x].map { |one| b9(one) }.first
  end

  def b9(x)
    [x, x + 1].sort_by { |one| b10(one) }.first
  end

  def b10(x)
    [x].each { |one| x = b11(one) }
    x
  end

  def b11(x)
    [x].map { |one| b12(one) }.first
  end

  def b12(x)
    i = 0
    while i < TURNS / 8
      x = (x * 31 + i) & 0xFFFFFF
      i += 1
    end
    x
  end
end

NUMBERS = (0...TURNS).to_a.freeze

# C calls small blocks again and again.
class Blocks
  def a1(x)
    a2(x + 1) + 1
  end

  def a2(x)
    a3(x + 2) + 1
  end

  def a3(x)
    a4(x + 3) + 1
  end

  def a4(x)
    a5(x + 4) + 1
  end

  def a5(x)
    a6(x + 5) + 1
  end

  def a6(x)
    a7(x + 6) + 1
  end

  def a7(x)
    a8(x + 7) + 1
  end

  def a8(x)
    a9(x + 8) + 1
  end

  def a9(x)
    a10(x + 9) + 1
  end

  def a10(x)
    a11(x + 10) + 1
  end

  def a11(x)
    a12(x + 11) + 1
  end

  def a12(x)
    NUMBERS.each { |i| x = (x * 31 + i) & 0xFFFFFF }
    x
  end

  def b1(x)
    b2(x + 1) + 1
  end

  def b2(x)
    b3(x + 2) + 1
  end

  def b3(x)
    b4(x + 3) + 1
  end

  def b4(x)
    b5(x + 4) + 1
  end

  def b5(x)
    b6(x + 5) + 1
  end

  def b6(x)
    b7(x + 6) + 1
  end

  def b7(x)
    b8(x + 7) + 1
  end

  def b8(x)
    b9(x + 8) + 1
  end

  def b9(x)
    b10(x + 9) + 1
  end

  def b10(x)
    b11(x + 10) + 1
  end

  def b11(x)
    b12(x + 11) + 1
  end

  def b12(x)
    NUMBERS.each { |i| x = (x * 31 + i) & 0xFFFFFF }
    x
  end
end

# An exception goes up all of the chain.
class Thrown
  def a1(x)
    a2(x + 1) + 1
  end

  def a2(x)
    a3(x + 2) + 1
  end

  def a3(x)
    a4(x + 3) + 1
  end

  def a4(x)
    a5(x + 4) + 1
  end

  def a5(x)
    a6(x + 5) + 1
  end

  def a6(x)
    a7(x + 6) + 1
  end

  def a7(x)
    a8(x + 7) + 1
  end

  def a8(x)
    a9(x + 8) + 1
  end

  def a9(x)
    a10(x + 9) + 1
  end

  def a10(x)
    a11(x + 10) + 1
  end

  def a11(x)
    a12(x + 11) + 1
  end

  def a12(x)
    i = 0
    while i < TURNS
      x = (x * 31 + i) & 0xFFFFFF
      i += 1
    end
    raise ArgumentError, x.to_s
  end

  def b1(x)
    b2(x + 1) + 1
  end

  def b2(x)
    b3(x + 2) + 1
  end

  def b3(x)
    b4(x + 3) + 1
  end

  def b4(x)
    b5(x + 4) + 1
  end

  def b5(x)
    b6(x + 5) + 1
  end

  def b6(x)
    b7(x + 6) + 1
  end

  def b7(x)
    b8(x + 7) + 1
  end

  def b8(x)
    b9(x + 8) + 1
  end

  def b9(x)
    b10(x + 9) + 1
  end

  def b10(x)
    b11(x + 10) + 1
  end

  def b11(x)
    b12(x + 11) + 1
  end

  def b12(x)
    i = 0
    while i < TURNS
      x = (x * 31 + i) & 0xFFFFFF
      i += 1
    end
    raise ArgumentError, x.to_s
  end

  def caught(name, x)
    send(name, x)
  rescue ArgumentError => e
    e.message.to_i
  end
end

# Methods of a module itself.
module Own
  class << self
    def a1(x)
      a2(x + 1) + 1
    end

    def a2(x)
      a3(x + 2) + 1
    end

    def a3(x)
      a4(x + 3) + 1
    end

    def a4(x)
      a5(x + 4) + 1
    end

    def a5(x)
      a6(x + 5) + 1
    end

    def a6(x)
      a7(x + 6) + 1
    end

    def a7(x)
      a8(x + 7) + 1
    end

    def a8(x)
      a9(x + 8) + 1
    end

    def a9(x)
      a10(x + 9) + 1
    end

    def a10(x)
      a11(x + 10) + 1
    end

    def a11(x)
      a12(x + 11) + 1
    end

    def a12(x)
      i = 0
      while i < TURNS
        x = (x * 31 + i) & 0xFFFFFF
        i += 1
      end
      x
    end

    def b1(x)
      b2(x + 1) + 1
    end

    def b2(x)
      b3(x + 2) + 1
    end

    def b3(x)
      b4(x + 3) + 1
    end

    def b4(x)
      b5(x + 4) + 1
    end

    def b5(x)
      b6(x + 5) + 1
    end

    def b6(x)
      b7(x + 6) + 1
    end

    def b7(x)
      b8(x + 7) + 1
    end

    def b8(x)
      b9(x + 8) + 1
    end

    def b9(x)
      b10(x + 9) + 1
    end

    def b10(x)
      b11(x + 10) + 1
    end

    def b11(x)
      b12(x + 11) + 1
    end

    def b12(x)
      i = 0
      while i < TURNS
        x = (x * 31 + i) & 0xFFFFFF
        i += 1
      end
      x
    end
  end
end

# Seven and three units of work.
def mix(one, other)
  x = 1
  7.times { x = one.call(x) }
  3.times { x = other.call(x) }
end

def both(object)
  mix(->(x) { object.a1(x) }, ->(x) { object.b1(x) })
end

PLAIN = Plain.new
CALLED = Called.new
BLOCKS = Blocks.new
THROWN = Thrown.new

def fibers
  work = lambda do |name, count|
    Fiber.new do
      count.times { Fiber.yield(PLAIN.send(name, 1)) }
      nil
    end
  end
  [work.call(:a1, 7), work.call(:b1, 3)].each { |fiber| nil while fiber.resume }
end

def threads
  [[:a1, 140], [:b1, 60]].map { |name, count| Thread.new { count.times { PLAIN.send(name, 1) } } }.each(&:join)
end

MODES = {
  "plain" => -> { both(PLAIN) },
  "recursion" => -> { mix(->(x) { PLAIN.a_deep(200, x) }, ->(x) { PLAIN.b_deep(200, x) }) },
  "callback" => -> { both(CALLED) },
  "blocks" => -> { both(BLOCKS) },
  "exception" => -> { mix(->(x) { THROWN.caught(:a1, x) }, ->(x) { THROWN.caught(:b1, x) }) },
  "module" => -> { both(Own) },
  "fibers" => -> { fibers },
  "threads" => -> { threads }
}.freeze

# Whatever is compiled while it runs is so before the threads begin.
60.times { both(PLAIN) } if ARGV[1] == "threads"
deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + ARGV[0].to_f
mode = MODES.fetch(ARGV[1])
mode.call while Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline
