# frozen_string_literal: true

# What do the methods cost that --only leaves out, and what does it cost to choose among many?
#
#   bin/bench only [--rounds N] [--methods N]
#
# Programs with and without rrtrace --only take turns of some 10 ms, each in a process of its own that stands still in between; the
# ratio is taken within a round, then the median over all rounds. Every 10 rounds the programs are new ones, as a process's memory
# layout has its luck. CPU time of the program's only thread. Then a program of 50,000 methods in 500 files (a large Rails
# application's) is loaded, and each of its methods called once: with a pattern that none of their names can match, and with one
# (a regular expression) where only the first call can tell.
require "fileutils"
require "optparse"
require "tmpdir"
require_relative "support/lab"

CHILD = <<~RUBY
  class Chosen; def call = 1; end
  Chosen.new.call
  def empty = nil
  def fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)
  RUNS = {
    "empty" => -> { i = 0; while i < 200_000; empty; i += 1; end },
    "fib" => -> { fib(21) },
    "c" => -> { i = 0; list = [1]; while i < 200_000; list.sum; i += 1; end }
  }
  def now = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
  RUNS.each_value { |run| 3.times { run.call } }
  $stdout.sync = true
  puts "ready"
  while (name = gets)
    run = RUNS.fetch(name.chomp)
    begun = now
    run.call
    puts now - begun
  end
RUBY
LOADER = <<~'RUBY'
  times = [Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)]
  ARGV.each { |path| require path }
  times << Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
  Models.each { |model| object = model.new; model.instance_methods(false).each { |name| object.public_send(name) } }
  times << Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
  $stdout.puts times.each_cons(2).map { |a, b| b - a }.join(" "), File.read("/proc/self/status")[/VmRSS:\s+(\d+)/, 1]
RUBY
WORKLOADS = {"empty" => "an empty method", "fib" => "fib", "c" => "a C method"}.freeze
WITHOUT_YJIT, WITH_YJIT = [], ["--yjit"]

def rrtrace(*options) = [Lab::RUBY, File.join(Lab::ROOT, "exe/rrtrace"), "--no-window", "-o", "/dev/null", *options, "--"]

class Child
  def initialize(*command)
    @io = IO.popen([Lab::CLEAN, *command], "r+", err: File::NULL)
    @io.gets or abort "#{command.join(" ")} failed"
  end

  def turn(name)
    @io.puts name
    @io.gets.to_i
  end

  def finish = @io.close
end

def outside_ratios(script, flags, rounds)
  ratios = Hash.new { |hash, key| hash[key] = [] }
  (rounds / 10.0).ceil.times do
    ruby = [Lab::RUBY, *flags, script]
    children = [Child.new(*ruby), Child.new(*rrtrace("--only", "Chosen#*"), *ruby)]
    10.times do |i|
      WORKLOADS.each_key do |name|
        plain, traced = i.even? ? children.map { _1.turn(name) } : children.reverse.map { _1.turn(name) }.reverse
        ratios[name] << plain.to_f / traced
      end
    end
    children.each(&:finish)
  end
  ratios
end

# Loads and calls many methods. [CPU ms of loading, of calling, MiB]
def load_many(paths, *before)
  loader = File.join(File.dirname(paths.first), "loader.rb")
  File.write(loader, LOADER)
  out = IO.popen([Lab::CLEAN, *before, Lab::RUBY, loader, *paths], err: File::NULL, &:read).lines
  abort "loading failed" unless out.size == 2
  [*out[0].split.map { _1.to_f * 1000 }, out[1].to_i / 1024.0]
end

def write_models(folder, count)
  (count / 100).times.map do |i|
    methods = Array.new(100) { |m| "  def method_#{m}(a = 1) = a ? 1 : [a].map { |x| x.to_s }\n" }
    path = File.join(folder, "model_#{i}.rb")
    File.write(path, "Models ||= []\nclass Model#{i}\n#{methods.join}end\nModels << Model#{i}\n")
    path
  end
end

rounds, methods = 60, 50_000
OptionParser.new do |parser|
  parser.on("--rounds N", Integer) { rounds = _1 }
  parser.on("--methods N", Integer) { methods = _1 }
end.parse!
puts Lab.machine, ""
keys = {}
Dir.mktmpdir("rrtrace-bench") do |folder|
  script = File.join(folder, "child.rb")
  File.write(script, CHILD)
  rows = [["outside the pattern, speed over untraced", "median", "middle half"]]
  [WITHOUT_YJIT, WITH_YJIT].each do |flags|
    next if flags.any? && !defined?(RubyVM::YJIT)

    outside_ratios(script, flags, rounds).each do |name, ratios|
      rows << ["#{WORKLOADS[name]} #{flags.join}".strip, format("%.3f", Lab.median(ratios)), Lab.quartiles(ratios).map { format("%.3f", _1) }.join("–")]
      keys["overhead.only_outside_ratio#{".#{name}" unless name == "empty"}#{".yjit" if flags.any?}"] = Lab.median(ratios)
    end
  end
  Lab.table(rows)
  puts

  paths = write_models(folder, methods)
  ways = {"untraced" => [], "--only Chosen#call" => rrtrace("--only", "Chosen#call"), "--only /^Chosen/" => rrtrace("--only", "/^Chosen/"),
          "all methods" => rrtrace}
  taken = ways.transform_values { [] }
  7.times { ways.each { |name, before| taken[name] << load_many(paths, *before) } }
  medians = taken.transform_values { |runs| runs.transpose.map { |column| Lab.median(column) } }
  rows = [["#{methods} methods", "load ms", "first calls ms", "MiB"]]
  medians.each { |name, (load, call, size)| rows << [name, *[load, call, size].map { format("%.0f", _1) }] }
  Lab.table(rows)
  plain = medians.fetch("untraced")
  keys["overhead.only_load_us_per_method"] = (medians.fetch("--only /^Chosen/")[0] - plain[0]) * 1000 / methods
  keys["overhead.only_first_call_us"] = (medians.fetch("--only /^Chosen/")[1] - plain[1]) * 1000 / methods
end
puts
keys.each { |key, value| puts format("%s: %.3f", key, value) }
