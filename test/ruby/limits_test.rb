# frozen_string_literal: true

require_relative "ext_help"

# What docs/limits.md says of CRuby: a newer one that tells more makes one of these fail, and the page can be shortened.
class LimitsTest < Minitest::Test
  include ExtHelp

  def test_inlined_calls_are_silent_and_what_they_call_hangs_below_the_caller
    stream = traced_one(<<~RUBY)
      def calls
        send(:leaf)
        __send__(:leaf)
        proc { leaf }.call
        proc { leaf }.()
        {"lit" => 1}["lit"]
        "x".freeze
        case 1 when Integer then leaf end
      end
      public def leaf = 1
      def public_ones = public_send(:leaf)
      def ours = 2.times { tap { leaf } }
      calls
      public_ones
      ours
    RUBY
    counts = stream.calls
    assert_equal 8, counts["Object#leaf"]
    silent = %w[BasicObject#__send__ Kernel#send Hash#[] String#freeze Proc#call]
    silent -= %w[Hash#[]] if RUBY_VERSION >= "4.0"
    assert_equal [0] * silent.size, counts.values_at(*silent).map(&:to_i)
    assert_equal [1, 1, 2], counts.values_at("Kernel#public_send", "Integer#times", "Kernel#tap")
    leaves = stream.spans_named("Object#leaf").map(&:ancestors)
    assert_equal [["Object#calls"]] * 5, leaves.first(5)
    assert_equal ["Object#public_ones", "Kernel#public_send"], leaves[5]
    assert_equal ["Object#ours", "Integer#times", "Kernel#tap"], leaves[6]
  end

  def test_what_defaults_of_arguments_call_comes_before_the_call_itself
    stream = traced_one(<<~RUBY)
      def fetch = 1
      def fail_it = raise("no")
      def page(x = fetch, y: fetch) = leaf
      def never(x = fail_it) = leaf
      def leaf = 1
      def around
        page
        never
      rescue
        leaf
      end
      around
    RUBY
    assert_equal [["Object#around"]] * 2, stream.spans_named("Object#fetch").map(&:ancestors)
    assert_equal [["Object#around"]], stream.spans_named("Object#page").map(&:ancestors)
    assert_equal [["Object#around", "Object#page"], ["Object#around"]], stream.spans_named("Object#leaf").map(&:ancestors)
    assert_equal [1, 0], stream.calls.values_at("Object#fail_it", "Object#never").map(&:to_i)
  end

  def test_a_call_is_missed_when_another_hook_raises_at_it_and_only_that
    stream = traced_one(<<~RUBY)
      def blown = 1
      def around
        blown
      rescue
        after
      end
      def after = 1
      tp = TracePoint.new(:call) { |t| raise "x" if t.method_id == :blown }
      tp.enable { 3.times { around } }
      after
    RUBY
    assert_equal [3, 4], stream.calls.values_at("Object#around", "Object#after")
    assert_equal 0, stream.calls["Object#blown"]
    assert_equal [[], ["Object#around"]], stream.spans_named("Object#after").map { |s| s.ancestors & ["Object#around"] }.uniq.sort
    assert_equal [:return], stream.spans_named("Object#around").map(&:closed_by).uniq
  end

  # The session is left in at_exit, as the library does it.
  def test_what_runs_after_at_exit_is_not_told
    reader = RingReader.new
    program = write("ends.rb", <<~RUBY)
      require "rrtrace/rrtrace"
      Rrtrace::Native.leave_at_exit(10_000)
      Rrtrace::Native.join(ENV.fetch("SESSION"), 65536, false, true, false)
      def waits
        $ready << 1
        sleep
      ensure
        clean_up
      end
      def clean_up = 1
      def at_the_end = 1
      def finalize = proc { at_the_end }
      $ready = Queue.new
      Thread.new { waits }
      $ready.pop
      object = Object.new
      ObjectSpace.define_finalizer(object, finalize)
      at_exit { at_the_end }
    RUBY
    run_program(RbConfig.ruby, "-I", LIB, program, env: {"SESSION" => reader.path})
    stream = reader.finish.first
    assert_equal [1, 0, 1], %w[Object#waits Object#clean_up Object#at_the_end].map { stream.calls[_1] }
    assert_nil stream.spans_named("Object#waits").first.closed_by
  end
end
