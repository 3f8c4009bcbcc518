# frozen_string_literal: true

# What does tracing add to a call, beside other ways of hearing of every call?
#
#   bin/bench overhead [--rounds N] [--variants LIST] [--try FOLDER…] [WORKLOAD…]     # empty fib blocks strings pingpong
#
# --try: another build of the extension as well, FOLDER/rrtrace/rrtrace.so, recording like ours.
#
# A program for each variant is started, and all stand still (SIGSTOP) but the one whose turn it is, for 10 ms and at least
# one pass of the workload. So variants that are compared are measured within the same tenths of a second, which matters on
# machines whose speed changes with what their neighbours do. Differences and ratios are taken within a round, then their
# median over all rounds; every 20 rounds the programs are new ones, as a process's memory layout has its luck.
#
# Own time is what the median pass of a turn took, without what it waited for a core (for other programs, and the visualizer
# where it wants one more core); it does hold what the program waits for room in the ring. Where two threads hand each other
# the GVL it is the CPU time of both. "clock" is all the time that went by. Added is the difference to the untraced program's
# own time, for each call: a call and its return; "at best" is the difference between the fastest tenth of either. Nothing is
# pinned to a core. The visualizer works beside the program, as that is how it is used. At the end one long turn tells what a
# call costs that comes on and on, when the visualizer can't catch up in between; and reading the clock is timed, which each
# event does once, as machines differ in it by a factor of ten.
require "json"
require "optparse"
require "tempfile"
require_relative "support/lab"
require_relative "../test/ruby/support/screen"

class Overhead
  VARIANTS = {
    "untraced" => "untraced",
    "raw" => "one raw hook, empty (C)",
    "clock" => "one raw hook that reads the clock (C)",
    "tracepoints" => "two TracePoints, empty (C)",
    "ring" => "plain TracePoint ring (C)",
    "unsent" => "rrtrace, events not handed over",
    "record" => "rrtrace --no-window -o /dev/null",
    "shot" => "rrtrace --shot, no recording",
    "window" => "rrtrace with its window",
    "ruby_tracepoint" => "TracePoint.new { } (Ruby)",
    "ruby_prof" => "ruby-prof",
    "vernier" => "vernier (samples)",
    "stackprof" => "stackprof (samples)"
  }.freeze
  FROM_GEMS = {"ruby_prof" => "ruby-prof", "vernier" => "vernier", "stackprof" => "stackprof"}.freeze
  WORKLOADS = {
    "empty" => "an empty method",
    "fib" => "fib(27)",
    "blocks" => "blocks",
    "strings" => "C methods of String and Array",
    "pingpong" => "two threads that hand each other the GVL"
  }.freeze
  GENERATION = 20
  TURN_MS = 10
  LONG_MS = 4000

  # One traced program.
  class Program
    # None is left standing still when the benchmark fails.
    RUNNING = []
    at_exit { RUNNING.each { |pid| Process.kill(:KILL, pid) } }

    def initialize(environment, command)
      @errors = Tempfile.new("rrtrace-bench")
      @said, out = IO.pipe
      read, @asked = IO.pipe
      @pid = Process.spawn(environment, *command, in: read, out: out, err: @errors)
      [read, out].each(&:close)
      RUNNING << @pid
      answer
      Process.kill(:STOP, @pid)
    end

    def turn(milliseconds)
      Process.kill(:CONT, @pid)
      @asked.puts milliseconds
      JSON.parse(answer)
    ensure
      Process.kill(:STOP, @pid)
    end

    # Ends it; returns what it said on stderr.
    def finish
      Process.kill(:CONT, @pid)
      @asked.close
      Process.wait(@pid)
      RUNNING.delete(@pid)
      said = File.read(@errors.path)
      abort "a measured program failed:\n#{said}" unless $?.success?
      said
    end

    private

    def answer = @said.gets || abort("a measured program ended:\n#{File.read(@errors.path)}")
  end

  def initialize(argv)
    @variants = VARIANTS.keys
    @tried = {}
    OptionParser.new do |parser|
      parser.on("--rounds N", Integer) { @rounds = _1 }
      parser.on("--variants LIST", Array, "untraced and raw are always there") { @variants &= ["untraced", "raw", *_1] }
      parser.on("--try FOLDER") { @tried["record #{@tried.size}"] = File.expand_path(_1) }
    end.parse!(argv)
    @variants += @tried.keys
    unknown = argv - WORKLOADS.keys
    abort "no such workload: #{unknown.first}; known are #{WORKLOADS.keys.join(" ")}" unless unknown.empty?
    @workloads = argv.empty? ? WORKLOADS.keys : argv
    @skipped = {}
  end

  def run
    puts Lab.machine, ""
    prepare
    results = @workloads.to_h { |workload| [workload, measure(workload).tap { |figures| show(workload, *figures) }] }
    @skipped.each { |variant, why| puts "#{VARIANTS.fetch(variant)}: left out, #{why}" }
    clock = clock_ns
    puts format("reading the clock: %.1f ns for the counter that rrtrace reads, %.1f ns for clock_gettime", *clock), ""
    keys(*results["empty"], clock.first) if results["empty"]
  ensure
    @screen&.close
  end

  private

  def prepare
    hooks = Lab.hooks
    unsent = Lab.extension("unsent", File.join(Lab::ROOT, "ext/rrtrace/extconf.rb"),
      Dir[File.join(Lab::ROOT, "{ext/rrtrace,wire}/*.{c,h,rb}")] << File.join(__dir__, "support/unsent.h"),
      so: "rrtrace/rrtrace.so", flags: "-include #{File.join(__dir__, "support/unsent.h").dump}")
    gems = Lab.gems if (@variants & FROM_GEMS.keys).any?
    FROM_GEMS.each do |variant, gem|
      skip(variant, "the gem #{gem} is not installed") unless gems && Dir[File.join(gems, "gems/#{gem}-[0-9]*")].any?
    end
    @paths = Hash.new { [hooks, Lab::LIB] }.merge("unsent" => [unsent, Lab::LIB], **@tried.transform_values { [_1, Lab::LIB] })
    @environment = Lab::CLEAN.merge("GEM_PATH" => [gems, ENV["GEM_PATH"]].compact.join(":"))
    @screen = open_screen if @variants.include?("window")
  end

  def open_screen
    Screen.new
  rescue SystemCallError, RuntimeError => error
    skip("window", "there is no Xvfb (#{error.message})")
    nil
  end

  def skip(variant, why)
    @variants.delete(variant) && @skipped[variant] = why
  end

  # Calls of a pass, variant => rounds, and what the long turn of a recorded program took.
  def measure(workload)
    calls = IO.popen(@environment, command("count", workload), &:read).to_i
    figures = rounds_of(@variants - ["window"], workload)
    # A window draws all the time, so only what it is compared with stands beside it.
    figures.merge!(rounds_of(%w[untraced raw window], workload).transform_keys { |name| (name == "window") ? name : "#{name} beside window" }) if @screen
    [calls, figures, (long_turn(workload) if @variants.include?("record"))]
  end

  def rounds_of(variants, workload)
    rounds = @rounds || ((workload == "empty") ? 60 : 8)
    figures = variants.to_h { |variant| [variant, []] }
    rounds.times.each_slice(GENERATION) do |numbers|
      warn "#{workload}: rounds #{numbers.first + 1} to #{numbers.last + 1} of #{rounds}, #{variants.size} variants"
      programs = variants.to_h { |variant| [variant, start(variant, workload)] }
      numbers.each do |number|
        variants.rotate(number * 5).each do |variant|
          figures[variant] << programs[variant].turn(TURN_MS)
          sleep TURN_MS / 1000.0 # the visualizer may finish before the next one's turn
        end
      end
      programs.each { |variant, program| check(variant, program.finish) }
    end
    figures
  end

  def long_turn(workload)
    plain, program = start("untraced", workload), start("record", workload)
    times = [plain, program].map { |one| one.turn(LONG_MS).fetch("mean_ns") }
    plain.finish
    waits = program.finish[/waited (\d+) times/, 1].to_i
    {added_ns: times.last - times.first, waits: waits}
  end

  def clock_ns
    IO.popen([@environment, Lab::RUBY, "-I", Lab.hooks, "-rbench_hooks", "-e", "puts BenchHooks.clock_ns"], &:readlines).map(&:to_f)
  end

  def command(variant, workload)
    [Lab::RUBY, *@paths[variant].flat_map { |path| ["-I", path] }, File.join(__dir__, "support/overhead_child.rb"), variant[/\w+/], workload]
  end

  def start(variant, workload)
    screen = (variant == "window") ? {"DISPLAY" => @screen.display, "SDL_VIDEODRIVER" => "x11"} : {}
    Program.new(@environment.merge(screen), command(variant, workload))
  end

  # A trace that is none would be cheap.
  def check(variant, said)
    return unless variant.start_with?("record", "shot")

    events, dropped = said[/(\d+) events of 1 streams/, 1].to_i, said[/(\d+) events dropped/, 1].to_i
    abort "#{variant}: #{events} events, #{dropped} dropped:\n#{said}" if events < 10_000 || dropped > 0
  end

  def show(workload, calls, figures, long)
    rows = [["#{WORKLOADS.fetch(workload)}: #{calls} calls a pass", "× raw hook", "middle half", "added ns/call", "at best", "× untraced", "× by clock", "calls/s"]]
    figures.each_key do |variant|
      rows << row(variant, calls, figures) unless variant.end_with?("beside window")
    end
    Lab.table(rows)
    puts format("recorded for %d s on end: %.1f ns/call added, %d waits for room", LONG_MS / 1000, long[:added_ns].fdiv(calls), long[:waits]) if long
    puts
  end

  def row(variant, calls, figures)
    ratios = ratios(variant, "raw", figures)
    low, high = Lab.quartiles(ratios)
    own = Lab.median(figures[variant].map { _1["own_ns"] })
    [VARIANTS.fetch(variant) { "rrtrace of #{@tried.fetch(variant)}" }, format("%.2f", Lab.median(ratios)), format("%.2f–%.2f", low, high),
      format("%.1f", Lab.median(added(variant, figures)) / calls), format("%.1f", (best(figures[variant]) - best(beside("untraced", variant, figures))) / calls),
      *%w[own_ns wall_ns].map { |what| format("%.2f", Lab.median(quotients(variant, what, figures))) }, human(calls * 1e9 / own)]
  end

  # For each round, the variants that were measured beside this one.
  def beside(name, variant, figures) = figures.fetch((variant == "window") ? "#{name} beside window" : name)

  # One round of ten is better: the machine had little else to do then.
  def best(list)
    own = list.map { _1["own_ns"] }.sort
    own[own.size / 10].to_f
  end

  # Round by round: what a pass took more than the untraced one.
  def added(variant, figures) = differences(figures.fetch(variant), beside("untraced", variant, figures))

  def ratios(variant, other, figures)
    others = differences(beside(other, variant, figures), beside("untraced", variant, figures))
    added(variant, figures).zip(others).map { |mine, theirs| mine / theirs }
  end

  def differences(list, plain) = list.zip(plain).map { |mine, base| (mine["own_ns"] - base["own_ns"]).to_f }

  def quotients(variant, what, figures)
    figures.fetch(variant).zip(beside("untraced", variant, figures)).map { |mine, plain| mine[what].fdiv(plain[what]) }
  end

  def human(value) = (value >= 1e6) ? format("%.1f M", value / 1e6) : format("%.0f k", value / 1e3)

  def keys(calls, figures, long, clock)
    return unless figures["record"]

    puts "overhead.added_ns_per_call: #{(Lab.median(added("record", figures)) / calls).round(1)}"
    {"raw" => "vs_raw_hook", "clock" => "vs_clock_hook", "ring" => "vs_plain_ring", "ruby_prof" => "vs_ruby_prof"}.each do |variant, key|
      puts "overhead.#{key}: #{Lab.median(ratios("record", variant, figures)).round(3)}" if figures[variant]
    end
    puts "overhead.clock_ns: #{clock.round(1)}"
    puts "overhead.long.added_ns_per_call: #{long[:added_ns].fdiv(calls).round(1)}"
    puts "overhead.long.waits: #{long[:waits]}"
  end
end

$stdout.sync = true
Overhead.new(ARGV).run
