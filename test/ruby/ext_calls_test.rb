# frozen_string_literal: true

require_relative "ext_help"

# Every call comes once, and the stacks that follow from the positions are the program's.
class ExtCallsTest < Minitest::Test
  include ExtHelp

  def test_recursion_is_counted_and_nested_exactly
    stream = assert_equals_oracle("def fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)\nfib(15)")
    assert_equal 1973, stream.calls["Object#fib"]
    spans = stream.spans_named("Object#fib")
    assert_equal [:return], spans.map(&:closed_by).uniq
    assert_equal (0..14).to_a, spans.map(&:depth).uniq.sort
  end

  def test_exceptions_and_retry_unwind_to_the_right_depth
    stream = assert_equals_oracle(<<~RUBY)
      def floor = raise("x")
      def fall(n) = n.zero? ? floor : fall(n - 1)
      def again
        @n = @n.to_i + 1
        fall(@n)
      rescue
        retry if @n < 4
        flag
      end
      def flag = 1
      again
      def jump = throw(:out)
      def catcher = catch(:out) { jump }
      catcher
      flag
    RUBY
    outer, inner = stream.spans_named("Object#flag").sort_by(&:depth)
    assert_equal 0, outer.depth
    assert_includes inner.ancestors, "Object#again"
    refute_includes inner.ancestors, "Object#fall"
    # CRuby says CALL again for each retry, without a RETURN for the one before.
    assert_equal 4, stream.calls["Object#again"]
  end

  def test_after_a_stack_overflow_the_depth_is_right_again
    stream = traced_one(<<~RUBY)
      def drop(n) = drop(n + 1)
      def after = 1
      def trap_it
        drop(0)
      rescue SystemStackError
        after
      end
      trap_it
      after
    RUBY
    assert_operator stream.calls["Object#drop"], :>, 1000
    below, top = stream.spans_named("Object#after")
    assert_equal ["Object#trap_it"], below.ancestors
    assert_empty top.ancestors
    assert_equal [:unwound], stream.spans_named("Object#drop").map(&:closed_by).uniq
  end

  def test_fibers_have_stacks_of_their_own
    stream = assert_equals_oracle(<<~RUBY)
      def gen(y) = 5.times { |i| feed(y, i) }
      def feed(y, i) = y << i
      def pull(e) = e.next
      e = Enumerator.new { |y| gen(y) }
      f = Enumerator.new { |y| gen(y) }
      3.times { pull(e); pull(f) }
    RUBY
    assert_equal 3, stream.spans.map(&:fiber).uniq.size
    feeds = stream.spans_named("Object#feed")
    assert(feeds.all? { _1.ancestors.include?("Object#gen") })
    assert(feeds.none? { _1.ancestors.include?("Object#pull") })
    assert_equal [:return], stream.spans_named("Object#pull").map(&:closed_by).uniq
  end

  def test_fibers_freed_by_a_gc_of_another_ractor_do_not_lend_their_stacks_either
    skip "Ractor.yield is gone in this Ruby" unless Ractor.respond_to?(:yield)

    # The Ractor has no hooks here: its collections are seen by the VM's own count alone.
    stream = traced_one(<<~RUBY, flags: ["-W0"], env: {"RRTRACE_TEST_NO_RACTOR_HOOKS" => "1"})
      def park = Fiber.yield
      def fresh = 1
      ractor = Ractor.new do
        Ractor.receive
        10.times { GC.start; Ractor.yield 1 }
      end
      ractor << 1
      10.times do
        20.times { Fiber.new { park }.resume }
        ractor.take
        10.times { Fiber.new { fresh }.resume }
      end
    RUBY
    fresh = stream.spans_named("Object#fresh")
    assert_equal 100, fresh.size
    assert(fresh.none? { _1.ancestors.include?("Object#park") })
    assert_equal 301, stream.spans.map(&:fiber).uniq.size
    assert_equal [nil], stream.spans_named("Object#park").map(&:closed_by).uniq
  end

  def test_fibers_that_die_do_not_lend_their_stacks_to_new_ones
    stream = traced_one(<<~RUBY)
      def park = Fiber.yield
      def fresh = 1
      20.times do
        10.times { Fiber.new { park }.resume }
        GC.start
        Fiber.new { fresh }.resume
      end
    RUBY
    assert_equal 200, stream.calls["Object#park"]
    assert(stream.spans_named("Object#fresh").none? { _1.ancestors.include?("Object#park") })
    assert_equal 221, stream.spans.map(&:fiber).uniq.size
  end

  def test_threads_are_told_apart_and_named
    stream = assert_equals_oracle(<<~RUBY)
      def work(n) = n.zero? ? 0 : work(n - 1)
      4.times.map { |i| Thread.new { Thread.current.name = "w\#{i}"; 200.times { work(5); Thread.pass } } }.each(&:join)
    RUBY
    assert_equal 4800, stream.calls["Object#work"]
    workers = stream.spans_named("Object#work").map(&:thread).uniq
    assert_equal 4, workers.size
    refute_includes workers, 1
    assert_equal %w[w0 w1 w2 w3], workers.map { stream.thread_names[_1].last }.sort
    assert_equal [:return], stream.spans_named("Object#work").map(&:closed_by).uniq
    assert_equal 4, stream.kinds.count(:started)
    assert_equal 4, stream.kinds.count(:exited)
    assert_operator stream.kinds.count(:resumed), :>=, 4
  end

  def test_a_renamed_thread_is_defined_again_without_c_calls_too
    stream = traced_one("def a = 1\na\nThread.current.name = 'main job'\na\nThread.new { a }.join\na", c_calls: false)
    assert_equal ["", "main job"], stream.thread_names[1].uniq
    assert_empty stream.calls(:c)
  end

  def test_all_ways_to_define_and_to_miss_a_method_are_counted
    assert_equals_oracle(<<~RUBY)
      class Ways
        %w[a b c].each { |n| define_method(n) { n } }
        define_method(:copy, instance_method(:a))
        def method_missing(name, *) = name == :ghost ? real : super
        def respond_to_missing?(*) = true
        def real = 1
        def with_block = yield
      end
      w = Ways.new
      3.times { w.a; w.b; w.c; w.copy; w.ghost; w.public_send(:real); w.method(:real).call; w.with_block { w.real } }
    RUBY
  end

  def test_a_setter_that_raises_on_a_frozen_object_leaves_nothing_open
    stream = traced_one(<<~RUBY)
      S = Struct.new(:a)
      class Stone; attr_writer :mark; end
      def carve(s) = (s.mark = 1)
      def scratch(s) = (s.a = 1)
      def rest = 1
      50.times { (carve(Stone.new.freeze) rescue 0); (scratch(S.new(1).freeze) rescue 0) }
      rest
    RUBY
    assert_empty stream.spans_named("Object#rest").first.ancestors
    assert_equal 50, stream.calls["Stone#mark="]
    assert_equal 50, stream.calls["S#a="]
  end

  def test_frames_that_are_open_at_the_start_are_sent_and_return
    streams = traced(<<~RUBY, before: "class K; define_method(:bm) { |&b| b.call }; end")
      Rrtrace::Native.leave(5000)
      def begun = Rrtrace::Native.join(ENV.fetch("SESSION"), 65536, false, true, false)
      def down(n) = n.zero? ? begun : [1].each { down(n - 1) }
      def fresh = 1
      K.new.bm { down(30) }
      fresh
    RUBY
    stream = streams.last
    frames = stream.spans.select(&:at_start)
    assert_equal ["K#bm"] + ["Object#down", "Array#each"] * 30 + ["Object#down", "Object#begun"], frames.map(&:name)
    assert_equal (0...frames.size).to_a, frames.map(&:depth)
    assert_equal [:return], frames.map(&:closed_by).uniq
    assert_equal 0, stream.calls["Object#down"]
    assert_equal 0, stream.spans_named("Object#fresh").first.depth
  end

  # Begins and ends deep in one thread, then in another, while others are in the middle of theirs.
  def test_tracing_can_begin_and_end_anywhere
    streams = traced(<<~RUBY)
      SESSION = ENV.fetch("SESSION")
      Rrtrace::Native.leave(5000)
      def begin_here = Rrtrace::Native.join(SESSION, 65536, false, true, false)
      def end_here = Rrtrace::Native.leave(5000)
      def down(n, &block) = n.zero? ? block.call : [1].each { down(n - 1, &block) }
      def fresh = 1
      def parked(q, r)
        q << 1
        r.pop
        fresh
      end
      q, r = Queue.new, Queue.new
      busy = 3.times.map { |i| Thread.new { down(i) { parked(q, r) } } }
      3.times { q.pop }
      down(4) { begin_here }
      fresh
      Thread.new { down(2) { end_here } }.join
      fresh
      Thread.new { down(6) { begin_here; fresh }; fresh }.join
      3.times { r << 1 }
      busy.each(&:join)
      f = Fiber.new { down(3) { end_here; begin_here; fresh }; fresh }
      f.resume
      fresh
    RUBY
    whole, first, second, third = streams
    assert_equal 0, whole.calls["Object#fresh"]
    assert_equal 1, first.calls["Object#fresh"]
    assert_empty first.spans_named("Object#fresh").first.ancestors
    assert_equal [:return], first.spans.select(&:at_start).map(&:closed_by).uniq
    assert_equal 5, second.calls["Object#fresh"]
    depths = second.spans_named("Object#fresh").map { |s| s.ancestors.count("Object#down") + (s.ancestors.include?("Object#parked") ? 10 : 0) }
    assert_equal [0, 7, 11, 12, 13], depths.sort, "below what was open in each thread, and no more"
    assert_equal [0, 0, 4], third.spans_named("Object#fresh").map { |s| s.ancestors.count("Object#down") }.sort
    assert(streams.all? { |s| s.spans.none? { |x| x.name == "Object#down" && x.closed_by == :unwound } })
  end

  def test_blocks_are_calls_when_asked_for
    stream = traced_one("def each_one = [1, 2].each { |x| touch(x) }\ndef touch(x) = x\neach_one", blocks: true)
    assert_equal 2, stream.calls(:block)["block in Object#each_one"]
    assert_equal [["Object#each_one", "Array#each", "block in Object#each_one"]],
      stream.spans_named("Object#touch").map(&:ancestors).uniq
    method = stream.methods_by_number.values.find { _1.kind == :block }
    assert_operator method.line, :>, 0
  end

  def test_spans_and_marks_carry_their_words
    stream = traced_one("s = Rrtrace::Native.span_begin('größe'); 3.times { Rrtrace::Native.mark('tick') }; Rrtrace::Native.span_end(s)")
    words = stream.strings.transform_values { _1.dup.force_encoding("UTF-8") }
    assert_equal %w[größe tick], words.values
    begun = stream.events.find { _1.kind == :span_begin }
    ended = stream.events.find { _1.kind == :span_end }
    assert_equal [begun.number, begun.place], [ended.number, ended.place]
    assert_equal 3, stream.kinds.count(:mark)
  end

  def test_gc_events_come_in_pairs_and_time_never_runs_backwards
    stream = traced_one("10.times { GC.start; 1000.times { +'x' } }")
    gc = stream.kinds & %i[gc_enter gc_exit]
    assert_equal %i[gc_enter gc_exit], gc
    assert_equal stream.kinds.count(:gc_enter), stream.kinds.count(:gc_exit)
    ticks = stream.events.map(&:ticks)
    assert_equal ticks.sort, ticks
  end

  def test_where_frames_cant_be_read_their_addresses_still_nest_calls
    stream = traced_one(<<~RUBY, env: {"RRTRACE_TEST_UNKNOWN_FRAMES" => "1"})
      def fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)
      define_method(:twice) { |&block| 2.times(&block) }
      fib(10)
      begin
        twice { raise "out" }
      rescue
        fib(2)
      end
    RUBY
    assert_equal 1, stream.process[:source]
    assert_equal 177 + 3, stream.calls["Object#fib"]
    assert_equal 1, stream.calls["Object#twice"]
    assert_equal [:return], stream.spans_named("Object#fib").map(&:closed_by).uniq
    assert_equal 10, stream.spans_named("Object#fib").map { |s| s.ancestors.count("Object#fib") }.max + 1
    assert_equal [%w[Object#twice]], stream.spans_named("Integer#times").map(&:ancestors)
  end

  def test_where_positions_must_be_counted_calls_still_nest
    stream = traced_one(<<~RUBY, env: {"RRTRACE_TEST_COUNT_POSITIONS" => "1"})
      def fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)
      fib(10)
      e = Enumerator.new { |y| 3.times { y << fib(2) } }
      2.times { e.next }
      Thread.new { fib(3) }.join
    RUBY
    assert_equal 2, stream.process[:source]
    assert_equal 177 + 6 + 5, stream.calls["Object#fib"]
    assert_equal [:return], stream.spans_named("Object#fib").map(&:closed_by).uniq
    assert_equal 10, stream.spans_named("Object#fib").map { |s| s.ancestors.count("Object#fib") }.max + 1
  end
end
