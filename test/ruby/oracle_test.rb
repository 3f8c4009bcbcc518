# frozen_string_literal: true

require "json"
require_relative "ext_help"
require_relative "support/real"

# Every program in oracle/ runs twice: a TracePoint counts in the one, we in the other, and both must agree for each method,
# whatever the program does: ours are those of the recording, as report and export tell them. In the traced run each Probe.here also asks the VM for its backtrace, which must be our stack.
#
# Comments at the top of a program say what is not as usual:
#
#   # ruby: --yjit             flags of the Ruby that runs it
#   # again: yjit              run it once more so; see AGAIN
#   # status: 3                its exit status; "-" when a signal ends it
#   # counts: ruby             how often C methods are called is a matter of time
#   # counts: own              how often others' methods are called is, too: calls of the program's own
#   # returns: unbalanced      CRuby reports returns that have no call (or the other way about): why is said there
#   # open: Object#park        frames that never end by nature
#   # any: Object#drop         the right count differs from run to run
#   # right: Object#a 3        TracePoint is wrong here: the right count
class OracleTest < Minitest::Test
  include ExtHelp
  include RealVisualizer

  Counts = Struct.new(:calls, :returns) # [kind, name] => count, over all processes
  # What only one of the two runs does.
  OWN = /\A(TracePoint|Rrtrace|Oracle|#<TracePoint)/

  AGAIN = {"yjit" => {ruby: %w[--yjit --yjit-call-threshold=1]}, "mn" => {env: {"RUBY_MN_THREADS" => "1"}}}.freeze

  def self.read_program(path)
    program = {path:, ruby: [], env: {}, status: "0", counts: "all", returns: "balanced", open: [], any: [], again: [], right: {}}
    File.foreach(path) do |line|
      break unless line.start_with?("#")
      case line.chomp
      when /\A# ruby: (.+)/ then program[:ruby] = $1.split
      when /\A# (open|any|again): (\S+)/ then program[$1.to_sym] << $2
      when /\A# right: (\S+) (\d+)/ then program[:right][[:ruby, $1.b]] = $2.to_i
      when /\A# (status|counts|returns): (\S+)/ then program[$1.to_sym] = $2
      end
    end
    program
  end

  Dir[File.join(__dir__, "oracle", "*.rb")].sort.each do |path|
    name = File.basename(path, ".rb")
    program = read_program(path)
    define_method("test_#{name}_is_counted_as_a_tracepoint_counts_it") { check(program) }
    program[:again].each do |way|
      define_method("test_#{name}_is_counted_with_#{way}_too") { check(program.merge(AGAIN.fetch(way))) }
    end
  end

  private

  # One call, or frame that was open before: what a RingReader's span tells, too.
  Call = Struct.new(:name, :kind, :closed_by, :at_start, :parent) do
    # names, outermost first
    def ancestors = parent ? parent.ancestors << parent.name : []
  end

  # The one place that knows where our counts come from: pid => [Call]. RRTRACE_ORACLE=ring asks the extension alone.
  def traced_calls(program)
    (ENV["RRTRACE_ORACLE"] == "ring") ? calls_of_ring(program) : calls_of_recording(program)
  end

  def calls_of_ring(program)
    reader = RingReader.new
    run_oracle(program, "SESSION" => reader.path)
    reader.finish.group_by(&:pid).transform_values do |streams|
      streams.flat_map do |stream|
        assert_equal 0, stream.dropped
        stream.spans
      end
    end
  end

  def calls_of_recording(program)
    path = temp_path("traced.rrt")
    run_oracle(program, "RECORD_OUT" => path)
    wait_until("the visualizer to end") { visualizer_pids.empty? }
    report = JSON.parse(run_visualizer("report", path, "--format=json"))
    assert_equal 0, report.fetch("dropped")
    rows = run_visualizer("export", path, "-f", "jsonl", "-o", "-").each_line.map { |line| JSON.parse(line) }
    calls = rows.group_by { _1.values_at("pid", "thread", "fiber") }.values.flat_map { |track| calls_of_track(track) }
    counts = rows.reject { _1["open_at_start"] }.map { _1["name"] }.tally
    reported = report.fetch("methods").group_by { _1["name"] }.transform_values { |list| list.sum { _1["calls"] } }
    assert_equal counts, reported.reject { |_, n| n.zero? }, "report and export agree"
    calls.group_by(&:first).transform_values { |pairs| pairs.map(&:last) }
  end

  # Rows come in the order of their starts, a frame before those that it calls.
  def calls_of_track(rows)
    stack = []
    rows.map do |row|
      stack.pop while stack.size > row["depth"]
      name = row["name"].b.gsub(/\\x(\h\h)/n) { $1.hex.chr } # JSON can't hold bytes that are no text
      call = Call.new(name, row["kind"].to_sym, row["closed_by"]&.to_sym, row["open_at_start"], stack.last)
      stack << call
      [row["pid"], call]
    end
  end

  def run_visualizer(*arguments)
    ran = run_program(PATH, *arguments)
    assert_equal 0, ran.code, ran.err
    ran.out
  end

  def counts_of(calls)
    counts = Counts.new(Hash.new(0), Hash.new(0))
    calls.each do |call|
      key = [call.kind, plain(call.name)]
      counts.calls[key] += 1 unless call.at_start
      counts.returns[key] += 1 if call.closed_by == :return
    end
    counts
  end

  def oracle_counts(program)
    run_oracle(program, "ORACLE_OUT" => temp_path("counts"))
    calls, returns = Hash.new(0), Hash.new(0)
    Dir[temp_path("counts.*")].each do |file|
      [calls, returns].zip(Marshal.load(File.binread(file))) { |into, list| list.each { |(kind, name), n| into[[kind, plain(name)]] += n } }
    end
    Counts.new(calls, returns)
  end

  def run_oracle(program, env)
    env = env.merge("ORACLE_OWN" => "1") if program[:counts] == "own"
    env = env.merge("PROBE_OUT" => temp_path("probe-#{env.keys.first}"), "ORACLE_LIB" => LIB).merge(program[:env])
    ran = run_program(RbConfig.ruby, "-W0", *program[:ruby], "-I", LIB, "-r", File.join(__dir__, "oracle_shim.rb"), program[:path], env:)
    assert_equal program[:status], ran.code.to_s, "#{ran.status.inspect}\n#{ran.err}" unless program[:status] == "-"
    (@outputs ||= []) << ran.out
    ran
  end

  # Addresses differ from run to run; Ruby code can't ask where a refinement was made; a name that was cut is compared by its beginning.
  def plain(name)
    name = name.b.gsub(/0x\h{16}/n, "0x").gsub(/(#<refinement:[^@>]*)@[^>]*>/n, '\1>')
    (name.bytesize > 60_000) ? name.byteslice(0, 60_000) : name
  end

  def check(program)
    skip "this Ruby has no YJIT" if program[:ruby].include?("--yjit") && !defined?(RubyVM::YJIT)
    oracle = oracle_counts(program)
    by_pid = traced_calls(program)
    calls = by_pid.values.flatten
    ours = counts_of(calls)
    assert_equal(*@outputs, "the program does the same in both runs")
    refute_empty oracle.calls
    compare(oracle.calls.merge(program[:right]), ours.calls, program, "calls")
    compare(oracle.returns, ours.returns, program, "returns") if program[:returns] == "balanced" && program[:counts] != "own"
    check_stacks(by_pid)
    check_nothing_is_left_open(calls, program) unless program[:counts] == "own"
  end

  def compare(wanted, got, program, what)
    kinds = (program[:counts] == "all") ? %i[ruby c] : [:ruby]
    keys = (program[:counts] == "own") ? wanted.keys : wanted.keys | got.keys
    differences = keys.filter_map do |key|
      next if !kinds.include?(key[0]) || OWN.match?(key[1]) || program[:any].include?(key[1]) || wanted[key] == got[key]
      "#{what} of #{key[0]} #{key[1].inspect[0, 100]}: #{got[key]}, TracePoint says #{wanted[key].to_i}"
    end
    assert_empty differences
  end

  # In each process: what the VM said at Probe.here, and our frames below it.
  def check_stacks(by_pid)
    said = Dir[temp_path("probe-*")].grep_v(/ORACLE/).flat_map { |path| File.readlines(path, chomp: true) }.map { _1.split(" ") }
    said = said.group_by(&:first).transform_values { |lines| lines.map { _1.drop(1) } }
    by_pid.each do |pid, calls|
      seen = calls.select { _1.name == "Probe.here" && !_1.at_start }.map { |call| call.ancestors.map { |name| name[/[#.]([^#.]+)\z/, 1] } }
      assert_equal (said[pid.to_s] || []).sort, seen.sort, "stacks at Probe.here in process #{pid}"
    end
  end

  # Our own leave is open when the stream ends.
  def check_nothing_is_left_open(calls, program)
    open = calls.reject { %i[return unwound].include?(_1.closed_by) }.map { plain(_1.name) }
    assert_empty open.reject { OWN.match?(_1) || program[:open].include?(_1) }.tally, "frames left open"
  end
end
