# frozen_string_literal: true

require_relative "ext_help"

# Every program in oracle/ runs twice: a TracePoint counts in the one, we in the other, and both must agree for each method,
# whatever the program does. In the traced run each Probe.here also asks the VM for its backtrace, which must be our stack.
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

  # The one place that knows where our counts come from: [Counts, streams].
  def traced_counts(program)
    reader = RingReader.new
    run_oracle(program, "SESSION" => reader.path)
    streams = reader.finish
    calls, returns = Hash.new(0), Hash.new(0)
    streams.each do |stream|
      assert_equal 0, stream.dropped
      stream.spans.each do |span|
        key = [span.kind, plain(span.name)]
        calls[key] += 1 unless span.at_start
        returns[key] += 1 if span.closed_by == :return
      end
    end
    [Counts.new(calls, returns), streams]
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
    ours, streams = traced_counts(program)
    assert_equal(*@outputs, "the program does the same in both runs")
    refute_empty oracle.calls
    compare(oracle.calls.merge(program[:right]), ours.calls, program, "calls")
    compare(oracle.returns, ours.returns, program, "returns") if program[:returns] == "balanced" && program[:counts] != "own"
    check_stacks(streams)
    check_nothing_is_left_open(streams, program) unless program[:counts] == "own"
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

  # In each process in order: what the VM said at Probe.here, and our frames below it.
  def check_stacks(streams)
    said = File.exist?(temp_path("probe-SESSION")) ? File.readlines(temp_path("probe-SESSION"), chomp: true) : []
    by_pid = said.map { _1.split(" ") }.group_by(&:first).transform_values { |lines| lines.map { _1.drop(1) } }
    streams.group_by { _1.pid.to_s }.each do |pid, list|
      seen = list.flat_map { |stream| stream.spans_named("Probe.here") }.reject(&:at_start).map { |span| bare_ancestors(span) }
      assert_equal (by_pid[pid] || []).sort, seen.sort, "stacks at Probe.here in process #{pid}"
    end
  end

  def bare_ancestors(span)
    span.ancestors.map { |name| name[/[#.]([^#.]+)\z/, 1] }
  end

  # Our own leave is open when the stream ends.
  def check_nothing_is_left_open(streams, program)
    open = streams.flat_map { |stream| stream.spans.select { _1.closed_by.nil? } }.map { plain(_1.name) }
    assert_empty open.reject { OWN.match?(_1) || program[:open].include?(_1) }.tally, "frames left open"
  end
end
