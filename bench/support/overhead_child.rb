# frozen_string_literal: true

# A program that bench/overhead.rb measures: VARIANT WORKLOAD. It listens in that way, and then, for each line on its standard
# input, a number of milliseconds, does passes of the workload for that long and answers with what a pass took, as JSON: the
# median (wall_ns, own_ns) and the mean (mean_ns, of own time). The variant "count" answers how many calls a pass makes.
require "json"
require "tmpdir"
require_relative "lab"

module Workload
  # Calls, and next to nothing else: 200 in a row to each turn of the loop, as the loop itself calls two C methods.
  module Empty
    def self.empty = nil
    class_eval <<~RUBY, __FILE__, __LINE__ + 1
      def self.pass
        i = 0
        while i < 100
          #{"empty;" * 200}
          i += 1
        end
      end
    RUBY
  end

  module Fib
    def self.fib(n) = (n < 2) ? n : fib(n - 1) + fib(n - 2)
    def self.pass = fib(27)
  end

  module Blocks
    NUMBERS = (1..1000).to_a.freeze
    def self.twice = yield(1) + yield(2)

    def self.pass
      20.times do
        NUMBERS.each { |n| n + 1 }
        NUMBERS.map { |n| n * 2 }.select { |n| n > 5 }.sum { |n| n }
        NUMBERS.each { |n| twice { |m| m + n } }
      end
    end
  end

  module Strings
    WORDS = %w[the quick brown fox jumps over the lazy dog].freeze

    def self.pass
      2000.times do
        line = WORDS.join(" ")
        line.upcase!
        line.split.each { |word| word.reverse.index("O") }
        WORDS.reverse.sort.first(3).push("x").include?("y")
      end
    end
  end

  # Two threads that hand a ball to and fro: the GVL changes hands with each throw.
  module PingPong
    TO, FRO = Thread::Queue.new, Thread::Queue.new
    def self.answer(ball) = ball + 1

    def self.pass
      @other ||= Thread.new { loop { FRO.push(answer(TO.pop)) } }
      1000.times do |i|
        TO.push(i)
        FRO.pop == i + 1 or raise "the ball was lost"
      end
    end
  end

  ALL = {"empty" => Empty, "fib" => Fib, "blocks" => Blocks, "strings" => Strings, "pingpong" => PingPong}.freeze
end

module Variant
  # Each starts listening; what it returns is called at the end.
  def self.start(name, output)
    case name
    when "untraced" then return
    when "raw", "clock", "tracepoints", "ring"
      require "bench_hooks"
      BenchHooks.public_send(name)
      return
    when "unsent", "record" then rrtrace(window: false, output: File::NULL)
    when "shot" then rrtrace(window: false, shot: "#{output}.png", memory: 64 << 20)
    when "window" then rrtrace(window: true, close_on_exit: true)
    when "ruby_tracepoint"
      trace = TracePoint.new(:call, :return, :c_call, :c_return) {}
      trace.enable
      return -> { trace.disable }
    when "ruby_prof"
      require "ruby-prof"
      profile = RubyProf::Profile.new
      profile.start
      return -> { profile.stop }
    when "vernier"
      require "vernier"
      Vernier.start_profile(out: "#{output}.json")
      return -> { Vernier.stop_profile }
    when "stackprof"
      require "stackprof"
      StackProf.start(mode: :wall, raw: true)
      return -> { StackProf.stop }
    else abort "no such variant: #{name}"
    end
    -> { Rrtrace.stop or abort "tracing ended before its time" }
  end

  def self.rrtrace(**options)
    require "rrtrace"
    Rrtrace.start(stats: true, **options)
    sleep 0.2 # the visualizer has started
  end
end

def turn(workload, seconds)
  passes = []
  enough = Lab.now + seconds
  passes << Lab::Stretch.of { workload.pass } while passes.empty? || Lab.now < enough
  passes.shift if passes.size > 3 # what other programs have pushed out of the caches is back then
  {wall_ns: Lab.median(passes.map(&:wall_ns)), own_ns: Lab.median(passes.map(&:own_ns)), mean_ns: passes.sum(&:own_ns) / passes.size}
end

def count(workload)
  calls = 0
  counter = TracePoint.new(:call, :c_call) { calls += 1 }
  counter.enable { workload.pass }
  calls
end

variant, name = ARGV
workload = Workload::ALL.fetch(name)
workload.pass
$stdout.sync = true
if variant == "count"
  puts count(workload)
  exit
end

Dir.mktmpdir("rrtrace-bench") do |folder|
  finish = Variant.start(variant, File.join(folder, "trace"))
  workload.pass # what is made on first use is made: trace instructions, definitions
  puts "ready"
  while (line = $stdin.gets)
    puts JSON.generate(turn(workload, Float(line) / 1000))
  end
  finish&.call
end
