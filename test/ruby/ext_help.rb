# frozen_string_literal: true

require_relative "ring_reader"
require_relative "test_helper"

# Programs traced by the bare extension, with RingReader in the visualizer's place.
module ExtHelp
  include TestHelp

  # Runs code between join and leave; returns the streams of all its processes.
  def traced(code, slots: 1 << 16, drop: false, c_calls: true, blocks: false, before: "", env: {}, reader: RingReader.new,
    flags: [], status: 0)
    program = <<~RUBY
      require "rrtrace/rrtrace"
      #{before}
      Rrtrace::Native.join(ENV.fetch("SESSION"), #{slots}, #{drop}, #{c_calls}, #{blocks})
      begin
      #{code}
      ensure
      Rrtrace::Native.leave(10_000)
      end
    RUBY
    @ran = run_program(RbConfig.ruby, *flags, "-I", LIB, write("traced.rb", program), env: {"SESSION" => reader.path}.merge(env))
    assert_equal status, @ran.code, @ran.err unless status.nil?
    reader.finish
  end

  def traced_one(...)
    streams = traced(...)
    assert_equal 1, streams.size, "one process"
    streams.first
  end

  # What TracePoint counts in the same run, as "Owner#name" => calls.
  ORACLE = <<~RUBY
    ORACLE = Hash.new(0)
    TracePoint.new(:call) { |tp| ORACLE["\#{tp.defined_class}#\#{tp.method_id}"] += 1 if tp.path == __FILE__ }.enable
  RUBY

  def assert_equals_oracle(code, **options)
    stream = traced_one("#{ORACLE}\n#{code}\nputs ORACLE.map { |name, count| \"ORACLE \#{name} \#{count}\" }", **options)
    oracle = @ran.out.lines.grep(/\AORACLE /).to_h do |line|
      _, name, count = line.split
      [name, count.to_i]
    end
    refute_empty oracle
    ours = stream.calls(:ruby)
    assert_equal oracle, ours.slice(*oracle.keys)
    stream
  end
end
