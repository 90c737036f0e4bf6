# Defines methods, calls them and drops them, for ever: what comes next lies where they lay.
#
# Generation N is four methods, rb_a_N to rb_d_N. Each is called by the one before alone, and rb_a_N by rb_s_M alone,
# where M is N modulo 8; the eight rb_s_M stay. So any other pair of caller and callee is a wrong name.
#
# ruby forever.rb SECONDS FIRST

class Made
end

class Callers
  def rb_s_0(made, x)
    made.go(x) + 1
  end

  def rb_s_1(made, x)
    made.go(x) + 1
  end

  def rb_s_2(made, x)
    made.go(x) + 1
  end

  def rb_s_3(made, x)
    made.go(x) + 1
  end

  def rb_s_4(made, x)
    made.go(x) + 1
  end

  def rb_s_5(made, x)
    made.go(x) + 1
  end

  def rb_s_6(made, x)
    made.go(x) + 1
  end

  def rb_s_7(made, x)
    made.go(x) + 1
  end
end

# The other name is for the caller alone: the method keeps its own.
def source(number)
  n = format('%08d', number)
  <<~RUBY
    def rb_a_#{n}(x)
      rb_b_#{n}(x + 1) + 1
    end
    def rb_b_#{n}(x)
      rb_c_#{n}(x + 2) + 1
    end
    def rb_c_#{n}(x)
      rb_d_#{n}(x + 3) + 1
    end
    def rb_d_#{n}(x)
      i = 0
      while i < 1_000
        x = (x * 31 + i) & 0xFFFFFF
        i += 1
      end
      x
    end
    alias go rb_a_#{n}
  RUBY
end

# One loop a caller, without anything of Ruby between it and what it calls.
def call(callers, made, which, till)
  x = 1
  while now < till
    x = case which
        when 0 then callers.rb_s_0(made, x)
        when 1 then callers.rb_s_1(made, x)
        when 2 then callers.rb_s_2(made, x)
        when 3 then callers.rb_s_3(made, x)
        when 4 then callers.rb_s_4(made, x)
        when 5 then callers.rb_s_5(made, x)
        when 6 then callers.rb_s_6(made, x)
        else callers.rb_s_7(made, x)
        end
  end
  x
end

def now
  Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

ending = now + Float(ARGV[0])
number = Integer(ARGV[1])
callers = Callers.new
made = Made.new
while now < ending
  Made.class_eval(source(number))
  # Some live long enough to be asked for, most are gone by then.
  call(callers, made, number % 8, [ending, now + ((number % 32).zero? ? 0.8 : 0.005)].min)
  %w[a b c d].each { |level| Made.send(:remove_method, format('rb_%s_%08d', level, number)) }
  Made.send(:remove_method, :go)
  GC.start if (number % 64).zero?
  number += 1
end
