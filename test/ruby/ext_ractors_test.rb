# frozen_string_literal: true

require_relative "ext_help"

# Each Ractor has a stream of its own: its methods, threads, fibers and GVL.
class ExtRactorsTest < Minitest::Test
  include ExtHelp

  # take is called value from 4.0 on.
  BEFORE = <<~RUBY
    Warning[:experimental] = false
    def result(ractor) = ractor.respond_to?(:value) ? ractor.value : ractor.take
    # Thread#join, and even Thread.pass, may hang in the Ractors of a plain Ruby 3.3.
    def done(*threads) = (sleep 0.01 while threads.any?(&:alive?))
  RUBY

  def traced(code, before: "", **options)
    super(code, before: BEFORE + before, flags: ["-W0"], **options)
  end

  def of_ractors(streams) = streams.reject { _1.process[:ractor] == 1 }

  def sum(streams, name) = streams.sum { _1.calls[name] }

  def test_every_ractor_is_traced_from_its_first_call_on
    streams = traced(<<~RUBY)
      module Job
        def self.fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)
        def self.first = Struct.new(:a).new(1).a
        def self.last = 1
      end
      def main_only = 1
      10.times do
        ractors = 6.times.map { |i| Ractor.new(i) { |n| Job.first; Job.fib(10); Job.last; n } }
        main_only
        ractors.each { |r| result(r) }
      end
      main_only
      sleep 0.1 # who has given its result has not ended yet
    RUBY
    main, *ractors = streams
    assert_equal 60, ractors.size
    assert_equal 1, main.process[:ractor]
    assert_equal ractors.size, ractors.map { _1.process[:ractor] }.uniq.size
    assert_equal [main.pid], ractors.map { _1.process[:pid] }.uniq
    assert_equal [[1, 177, 1]], ractors.map { |s| s.calls.values_at("Job.first", "Job.fib", "Job.last") }.uniq
    assert_equal 11, main.calls["Object#main_only"]
    assert_equal 0, main.calls["Job.fib"]
    ractors.each do |s|
      assert_equal [:return], s.spans.map(&:closed_by).uniq
      assert_equal 0, s.dropped
      assert_equal :exited, s.kinds.last, "the end of its thread is the last thing in it"
      assert_equal (0..9).to_a, s.spans_named("Job.fib").map(&:depth).uniq.sort
      ticks = s.events.map(&:ticks)
      assert_equal ticks.sort, ticks
    end
  end

  def test_numbers_of_threads_and_fibers_are_unique_in_the_process
    streams = traced(<<~RUBY)
      def work = 1
      Thread.new { work }.join
      4.times do # one after the other: threads in several Ractors at once hang or crash a plain Ruby 3.3
        result(Ractor.new { done(*3.times.map { Thread.new { work; Fiber.new { work }.resume } }); Enumerator.new { |y| y << work }.next })
      end
    RUBY
    threads = streams.map { |s| s.defines(:thread).map(&:first).uniq }
    fibers = streams.map { |s| s.defines(:fiber).map(&:first).uniq }
    assert_equal [2, 4, 4, 4, 4], threads.map(&:size)
    assert_equal threads.flatten.uniq, threads.flatten
    assert_equal [2, 8, 8, 8, 8], fibers.map(&:size)
    assert_equal fibers.flatten.uniq, fibers.flatten
    of_ractors(streams).each do |s|
      assert_equal 7, s.calls["Object#work"]
      assert_equal 3, s.kinds.count(:started)
      assert_includes 2..4, s.kinds.count(:exited), "a thread may say so when its Ractor is over"
      assert_operator s.kinds.count(:resumed), :>=, 3
      assert_equal [s.process[:ractor]], s.defines(:thread).map { |_, payload| payload.unpack1("L<") }.uniq
    end
  end

  def test_a_ractors_name_is_its_threads
    streams = traced("def a = 1\nresult(Ractor.new(name: 'wörker') { a })\nresult(Ractor.new { Thread.current.name = 'own'; a })")
    assert_equal [["", "own"], ["wörker"]], of_ractors(streams).map { _1.thread_names.values.first.map { |n| n.dup.force_encoding("UTF-8") } }.sort
  end

  def test_exceptions_yields_and_moves_leave_right_stacks
    skip "Ractor.yield is gone in this Ruby" unless Ractor.respond_to?(:yield)

    streams = traced(<<~RUBY)
      def fall(n) = n.zero? ? raise("x") : fall(n - 1)
      def safe
        fall(5)
      rescue
        rest
      end
      def rest = 1
      def feed(n) = n.times { |i| Ractor.yield i }
      giver = Ractor.new { safe; feed(3); rest; :done }
      3.times { giver.take }
      result(giver)
      bad = Ractor.new { Thread.current.report_on_exception = false; fall(3) }
      (result(bad) rescue rest)
      taker = Ractor.new { 3.times { Ractor.receive; rest }; safe }
      3.times { |i| taker.send([i], move: true) }
      result(taker)
      inner = Ractor.new { result(Ractor.new { safe; 1 }) + 1 }
      result(inner)
    RUBY
    rests = of_ractors(streams).flat_map { |s| s.spans_named("Object#rest") }
    assert_equal [["Object#safe"]] * 3 + [[]] + [["Integer#times"]] * 3, rests.map(&:ancestors).sort_by { |a| [-a.count("Object#safe"), a.size] }
    assert_equal [:return, :return], of_ractors(streams).flat_map { |s| s.spans_named("Integer#times") }.map(&:closed_by)
    assert_equal 5, of_ractors(streams).size
    assert(of_ractors(streams).all? { |s| s.spans.none? { _1.closed_by.nil? } })
  end

  # Ruby bug 19112: a Ractor that is freed switches off CALL and RETURN everywhere, if its list of hooks is empty.
  def test_ractors_that_are_freed_silence_nobody
    streams = traced(<<~RUBY)
      def during = 1
      def after_gc = 1
      def in_ractor = 1
      20.times do
        3.times { result(Ractor.new { in_ractor }) }
        GC.start
        10.times { during }
      end
      200.times { after_gc }
      alive = Ractor.new { Ractor.receive; 200.times { after_gc } }
      5.times { result(Ractor.new { in_ractor }) }
      3.times { GC.start }
      alive << 1
      result(alive)
    RUBY
    main = streams.first
    assert_equal 200, main.calls["Object#during"]
    assert_equal 200, main.calls["Object#after_gc"]
    assert_equal 400, sum(streams, "Object#after_gc")
    assert_equal 65, sum(streams, "Object#in_ractor")
    enters, exits = streams.map { |s| [s.kinds.count(:gc_enter), s.kinds.count(:gc_exit)] }.transpose
    assert_equal enters, exits
  end

  def test_a_session_can_begin_and_end_while_ractors_run
    streams = traced(<<~RUBY)
      SESSION = ENV.fetch("SESSION")
      def step(n) = n
      def deep(n) = n.zero? ? loop { break if step(Ractor.receive) == :end } : deep(n - 1)
      r = Ractor.new { deep(5); step(0); step(0) }
      r << 1
      sleep 0.25
      Rrtrace::Native.leave(5000)
      r << 2
      sleep 0.25
      Rrtrace::Native.join(SESSION, 65536, false, true, false)
      r << 3
      sleep 0.25
      r << :end
      result(r)
      result(Ractor.new { step(0) })
    RUBY
    assert_equal 5, streams.size
    first, second, third = of_ractors(streams)
    assert_equal [[6, 1], [0, 4], [0, 1]], [first, second, third].map { _1.calls.values_at("Object#deep", "Object#step") }
    frames = second.spans.select(&:at_start).map(&:name)
    assert_equal ["Object#deep"] * 6, frames.grep(/deep/)
    assert_equal [0, 0], second.spans_named("Object#step").last(2).map(&:depth)
  end

  def test_a_process_that_is_left_or_ends_ends_its_ractors_streams
    streams = traced(<<~RUBY)
      def spin = 1
      rs = 3.times.map { Ractor.new { loop { spin } } }
      sleep 0.1
    RUBY
    assert_equal 4, streams.size
    assert(of_ractors(streams).all? { |s| s.calls["Object#spin"] > 100 && s.said_goodbye })
  end

  def test_a_child_of_a_ractor_begins_with_that_ractors_stack
    streams = traced(<<~RUBY)
      def leaf = 1
      def down(n, &block) = n.zero? ? block.call : down(n - 1, &block)
      result(Ractor.new { leaf; down(4) { Process.wait(fork { leaf; Fiber.new { leaf }.resume; leaf }) } })
      leaf
    RUBY
    main, ractor, child = streams
    assert_equal [1, 1, 3], [main, ractor, child].map { _1.calls["Object#leaf"] }
    assert_equal [main.pid, main.pid], [ractor.pid, child.ppid]
    assert_equal [1, 2, 1], streams.map { _1.process[:ractor] }, "in the child it is the main one"
    assert_equal 5, child.spans.count { _1.at_start && _1.name == "Object#down" }
    leaves = child.spans_named("Object#leaf").map { |s| s.ancestors.count("Object#down") }
    assert_equal [0, 5, 5], leaves.sort
  end

  def test_forked_children_make_ractors_of_their_own
    streams = traced(<<~RUBY)
      def leaf = 1
      Process.wait(fork { leaf; 2.times { result(Ractor.new { leaf }) } })
      2.times { result(Ractor.new { leaf }) }
      leaf
    RUBY
    by_pid = streams.group_by(&:pid)
    assert_equal [[1, 1, 1], [1, 1, 1]], by_pid.values.map { |list| list.map { _1.calls["Object#leaf"] } }
    assert_equal [[1, 2, 3], [1, 2, 3]], by_pid.values.map { |list| list.map { _1.process[:ractor] } }
    assert_equal [streams.first.pid], by_pid.values.last.map(&:ppid).uniq
  end

  def test_spans_and_marks_land_in_their_ractors_stream
    streams = traced(<<~RUBY)
      result(Ractor.new { s = Rrtrace::Native.span_begin("inside"); Rrtrace::Native.mark("here"); Rrtrace::Native.span_end(s); 1 })
      Rrtrace::Native.mark("outside")
    RUBY
    assert_equal [["outside"], %w[inside here]], streams.map { _1.strings.values }
  end

  def test_many_ractors_leave_no_memory_and_no_descriptors_behind
    traced(<<~RUBY)
      def work = 1
      def open_files = Dir.children("/proc/self/fd").size
      def mappings = File.readlines("/proc/self/maps").grep(/rrtrace-\\d+-/).size
      def memory_kb = File.read("/proc/self/status")[/VmRSS:\\s+(\\d+)/, 1].to_i
      30.times { result(Ractor.new { work }) }
      before, memory_before = open_files, memory_kb
      300.times { result(Ractor.new { work }) }
      GC.start
      sleep 0.05
      puts "LEFT", open_files - before, mappings, memory_kb - memory_before
    RUBY
    files, maps, memory = @ran.out.lines.drop(1).map(&:to_i)
    assert_operator files, :<=, 2
    assert_operator maps, :<=, 4, "rings"
    assert_operator memory, :<=, 40_000, "300 streams would take 100 MB"
  end

  def test_trace_ractor_traces_where_that_is_needed_and_is_harmless_elsewhere
    code = <<~RUBY
      require "rrtrace"
      def unseen = 1
      def seen = 1
      p Rrtrace.trace_ractor { 1 }, ((Rrtrace.trace_ractor) rescue $!.class)
      Rrtrace.start
      p Rrtrace.trace_ractor { 2 }
      p result(Ractor.new { unseen; Rrtrace.trace_ractor { seen; Rrtrace.span("s") { seen }; Rrtrace.mark("m"); Rrtrace.started? } })
      p result(Ractor.new { Rrtrace.stop rescue $!.class })
    RUBY
    [{}, UNKNOWN].each do |env|
      reader = RingReader.new
      @ran = run_program(RbConfig.ruby, "-W0", "-I", LIB, write("program.rb", BEFORE + code), env: {"RRTRACE_SESSION" => reader.path}.merge(env))
      assert_equal "1\nRrtrace::Error\n2\ntrue\nRrtrace::Error\n", @ran.out, @ran.err
      main, ractor = reader.finish
      assert_equal [0, 2], [main, ractor].map { _1.calls["Object#seen"] }
      assert_equal env.empty? ? 1 : 0, ractor.calls["Object#unseen"]
      assert_equal %w[s m], ractor.strings.values
    end
  end

  def test_a_session_is_not_started_in_a_further_ractor
    code = "#{BEFORE}\nrequire 'rrtrace'\nputs result(Ractor.new { begin; Rrtrace.start; rescue Rrtrace::Error => e; e.message; end })"
    assert_match(/\Atracing is started and stopped in the main Ractor/, run_program(RbConfig.ruby, "-W0", "-I", LIB, write("start.rb", code)).out)
  end

  # Where the VM's memory is not as we know it.
  UNKNOWN = {"RRTRACE_TEST_NO_RACTOR_HOOKS" => "1"}.freeze

  def test_where_ractors_are_not_known_they_ask_for_themselves
    streams = traced(<<~RUBY, env: UNKNOWN)
      def unseen = 1
      def seen = 1
      rs = 3.times.map { Ractor.new { unseen; Rrtrace::Native.attach_ractor; Rrtrace::Native.attach_ractor; seen; Ractor.receive; seen } }
      seen
      rs.each { |r| r << 1 }
      rs.each { |r| result(r) }
      rs = nil
      3.times { GC.start }
      seen
    RUBY
    assert_equal [2, 2, 2, 2], streams.map { _1.calls["Object#seen"] }
    assert_equal 0, sum(streams, "Object#unseen")
    assert_equal 4, streams.map { _1.process[:ractor] }.uniq.size
  end

  def test_where_ractors_are_not_known_a_freed_one_silences_nobody_either
    stream = traced_one(<<~RUBY, env: UNKNOWN)
      def after_gc = 1
      3.times { result(Ractor.new { 1 }) }
      3.times { GC.start; 10.times { +"" } }
      sleep 0.01
      200.times { after_gc }
    RUBY
    assert_equal 200, stream.calls["Object#after_gc"]
  end
end
