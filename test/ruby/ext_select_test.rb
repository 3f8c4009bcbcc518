# frozen_string_literal: true

require_relative "ext_help"

# Chosen methods, and no others: counted exactly, whatever way they came to be, and the rest of the program without a hook.
class ExtSelectTest < Minitest::Test
  include ExtHelp

  # Runs code with a selection. before: what was there already.
  def traced_with(code, only: [], except: [], folders: [], before: "", **options)
    traced_one(code, before: "#{before}\nRrtrace::Native.select(#{only.inspect}, #{except.inspect}, #{folders.inspect})", **options)
  end

  # Both when the code was there at the start (the program's own file was compiled before) and when it is compiled after it.
  def assert_calls(wanted, code, **options)
    [code, "load #{write("later.rb", code).inspect}"].each do |way|
      stream = traced_with(way, **options)
      assert_equal wanted, stream.calls
      assert_equal wanted.keys.sort, stream.methods_by_number.values.map { _1.name.dup.force_encoding("UTF-8") }.sort.uniq,
        "nothing else is defined"
    end
  end

  FOO = <<~RUBY
    class Foo
      def bar = other
      def other = 1
      def bar? = true
      def self.bar = 1
      def self.make = new
    end
    module Space
      class Foo; def bar = 1; end
      module Deep; def self.bar = 1; end
    end
    class Elsewhere; def bar = 1; def other = 2; end
    def all_of_it
      f = Foo.make
      f.bar; f.other; f.bar?; Foo.bar; Space::Foo.new.bar; Space::Deep.bar
      e = Elsewhere.new
      e.bar; e.other
    end
  RUBY

  PATTERNS = {
    "Foo#bar" => {"Foo#bar" => 2},
    "Foo.bar" => {"Foo.bar" => 2},
    "Foo#*" => {"Foo#bar" => 2, "Foo#other" => 4, "Foo#bar?" => 2},
    "Foo.*" => {"Foo.bar" => 2, "Foo.make" => 2},
    "Foo" => {"Foo#bar" => 2, "Foo#other" => 4, "Foo#bar?" => 2, "Foo.bar" => 2, "Foo.make" => 2},
    "Space::*" => {"Space::Foo#bar" => 2, "Space::Deep.bar" => 2},
    "Space" => {"Space::Foo#bar" => 2, "Space::Deep.bar" => 2},
    "*::Foo#bar" => {"Space::Foo#bar" => 2},
    "*#other" => {"Foo#other" => 4, "Elsewhere#other" => 2},
    "#other" => {"Foo#other" => 4, "Elsewhere#other" => 2},
    ".make" => {"Foo.make" => 2},
    "bar?" => {"Foo#bar?" => 2},
    "other" => {"Foo#other" => 4, "Elsewhere#other" => 2},
    "*where*" => {"Elsewhere#bar" => 2, "Elsewhere#other" => 2},
    "/^elsewhere#o/i" => {"Elsewhere#other" => 2},
    '/\AFoo#b\w+\z/' => {"Foo#bar" => 2},
    "::Foo#bar" => {"Foo#bar" => 2},
    "::Space" => {"Space::Foo#bar" => 2, "Space::Deep.bar" => 2},
    "Foo::make" => {"Foo.make" => 2},
    "Space::Deep::bar" => {"Space::Deep.bar" => 2},
    "Nowhere#bar" => {}
  }.freeze

  PATTERNS.each do |pattern, wanted|
    define_method("test_the_pattern_#{pattern}_chooses_these_methods") do
      assert_calls(wanted, "2.times { all_of_it }", before: FOO, only: [pattern])
    end
  end

  def test_names_in_letters_beyond_ascii
    before = "class \u00C4; def \u00FC = 1; def b = 1; end\nclass B; def \u00FC = 1; end"
    run = "\u00C4.new.\u00FC; \u00C4.new.b; B.new.\u00FC"
    assert_calls({"\u00C4#\u00FC" => 1, "\u00C4#b" => 1}, run, before: before, only: ["\u00C4"])
    assert_calls({"\u00C4#\u00FC" => 1, "B#\u00FC" => 1}, run, before: before, only: ["\u00FC"])
  end

  def test_methods_defined_after_the_start_are_chosen_like_those_before
    assert_calls({"Foo#bar" => 3, "Space::Deep.bar" => 3}, "#{FOO}\n3.times { all_of_it }", only: ["Foo#bar", "Space::Deep.*"])
  end

  def test_several_patterns_and_exceptions
    assert_calls({"Foo#other" => 2, "Foo.make" => 1}, "all_of_it", before: FOO, only: ["Foo", "Elsewhere"], except: ["bar", "bar?", "Elsewhere#other"])
  end

  def test_all_but_the_exceptions_with_their_stacks
    stream = traced_with("all_of_it; [2].sum; [2].first", before: FOO, except: ["Foo#bar", "Elsewhere", "Array#first", "new"])
    assert_equal({"Object#all_of_it" => 1, "Foo.make" => 1, "Foo#other" => 2, "Foo#bar?" => 1, "Foo.bar" => 1, "Space::Foo#bar" => 1,
                  "Space::Deep.bar" => 1}, stream.calls(:ruby))
    assert_equal 1, stream.calls["Array#sum"]
    assert_equal 0, stream.calls["Array#first"]
    assert_equal [["Object#all_of_it"]], stream.spans_named("Foo#other").map(&:ancestors).uniq
    assert_equal [:return], stream.spans.reject { _1.name.start_with?("Rrtrace") || _1.at_start }.map(&:closed_by).uniq
  end

  WAYS = <<~RUBY
    class Ways
      %w[a b].each { |n| define_method(n) { n } }
      define_method(:copied, instance_method(:a))
      class_eval "def from_text = 1"
      attr_accessor :attribute
      alias_method :other_name, :from_text
      def each_thing = [1, 2].each { |x| yield x }
      private def hidden = 1
      def show = hidden
    end
    module Helper
      module_function
      def help = 1
    end
    module Mixed; def mixed = 1; end
    class Ways; include Mixed; end
    module Before
      def show = super
    end
    Ways.prepend(Before)
    LONE = Ways.new
    LONE.define_singleton_method(:single) { 1 }
    def LONE.plain = 1
    Later = Class.new { def late = 1 }
    Made = Struct.new(:a) { def doubled = a * 2 }
    def run_ways
      w = Ways.new
      w.a; w.b; w.from_text; w.other_name; w.each_thing { }; w.show; w.mixed; w.attribute = 1; w.attribute
      Helper.help
      Class.new { include Helper; def call = help }.new.call
      LONE.single; LONE.plain
      Later.new.late
      Made.new(2).doubled
    end
  RUBY

  ALL_WAYS = {"Ways#a" => 2, "Ways#b" => 2, "Ways#from_text" => 4, "Ways#each_thing" => 2, "Ways#hidden" => 2, "Ways#show" => 2,
              "Mixed#mixed" => 2, "Before#show" => 2, "Helper.help" => 2, "Helper#help" => 2, "#<Ways>.single" => 2, "#<Ways>.plain" => 2,
              "Later#late" => 2, "Made#doubled" => 2}.freeze

  # Each alone: all others, with which it may share its code, are called, too.
  ALL_WAYS.each do |name, count|
    define_method("test_#{name}_is_counted_alone") do
      wanted = {name => count}
      assert_calls(wanted, "2.times { run_ways }", before: WAYS, only: [name])
      assert_calls(wanted, "#{WAYS}\n2.times { run_ways }", only: [name])
    end
  end

  def test_all_ways_to_define_a_method_are_counted_as_a_whole_trace_does
    code = "2.times { run_ways }"
    whole = traced_one(code, before: WAYS).calls(:ruby).select { |name, _| ALL_WAYS.key?(name) }
    assert_equal ALL_WAYS.sort, whole.sort
    assert_equal ALL_WAYS.sort, traced_with(code, before: WAYS, only: ALL_WAYS.keys).calls.sort
  end

  def test_code_that_defines_methods_of_several_classes
    assert_calls({"Second#shared" => 7, "Second.named" => 3, "Second#made" => 5, "Second#from_macro" => 4}, <<~RUBY, only: ["Second"])
      Shared = proc do
        def shared = 1
        define_method(:made) { 1 }
      end
      class First; end
      class Second; end
      module Macro
        def macro(name, &body) = define_method(name, &body)
        def named_one = define_singleton_method(:named) { 1 }
      end
      [First, Second].each do |c|
        c.extend(Macro)
        c.class_eval(&Shared)
        c.macro(:from_macro) { 1 }
        c.named_one
        # The first one's call tells that it is not wanted, before there is the second one's.
        7.times { c.new.shared }
        5.times { c.new.made }
        4.times { c.new.from_macro }
        3.times { c.named }
      end
    RUBY
  end

  def test_a_class_that_gets_its_name_later
    assert_calls({"Named#call" => 3}, <<~RUBY, only: ["Named"])
      made = Class.new { def call = 1 }
      5.times { made.new.call }
      Named = made
      3.times { Named.new.call }
    RUBY
  end

  def test_a_file_that_is_loaded_twice_and_a_method_that_is_redefined
    path = write("twice.rb", "class Twice; def call = 1; end\n")
    stream = traced_with(<<~RUBY, only: ["Twice#call"])
      2.times { load #{path.inspect}; Twice.new.call }
      class Twice
        old = instance_method(:call)
        def call = 2
        KEPT = old
      end
      Twice.new.call
      Twice::KEPT.bind_call(Twice.new)
      eval("class Twice; def call = 3; end", binding, "(eval)", 1)
      Twice.new.call
    RUBY
    assert_equal({"Twice#call" => 5}, stream.calls)
    assert_equal 3, stream.methods_by_number.size, "in the file, in the program, in the eval"
  end

  def test_a_methods_place_is_that_of_its_call_however_many_methods_there_are
    stream = traced_with(<<~'RUBY', only: ["/^Many#/"], slots: 1 << 18)
      class Many
        def outer(name)
          public_send(name)

          1
        end
        6000.times { |i| class_eval("def m#{i}\n\n1\nend", "many.rb", 1) }
      end
      many = Many.new
      2.times { 6000.times { |i| many.outer("m#{i}") } }
    RUBY
    assert_equal 24_000, stream.calls.values.sum
    assert_equal 6001, stream.methods_by_number.size
    assert_equal [1], stream.methods_by_number.values.select { _1.path == "many.rb" }.map(&:line).uniq
  end

  def test_refinements
    assert_calls({"#<refinement:String@Loud>#shout" => 2}, <<~RUBY, only: ["#<refinement:String@Loud>#shout"])
      module Loud
        refine(String) { def shout = upcase }
      end
      class String; def shout = self; end
      using Loud
      2.times { "a".shout }
      "a".method(:upcase).call
    RUBY
  end

  def test_recursion_exceptions_and_unchosen_frames_between
    stream = traced_with(<<~RUBY, only: ["fall", "floor", "rest", "rescuer"])
      def floor = raise("x")
      def middle(n) = fall(n)
      def fall(n) = n.zero? ? floor : middle(n - 1)
      def rescuer
        fall(3)
      rescue
        rest
      end
      def between = rescuer
      def rest = 1
      2.times { between }
      rest
    RUBY
    assert_equal({"Object#rescuer" => 2, "Object#fall" => 8, "Object#floor" => 2, "Object#rest" => 3}, stream.calls)
    assert_equal [["Object#rescuer"], ["Object#rescuer"], []], stream.spans_named("Object#rest").map(&:ancestors)
    assert_equal [["Object#rescuer"] + ["Object#fall"] * 4], stream.spans_named("Object#floor").map(&:ancestors).uniq
    assert_equal [:return], stream.spans.map(&:closed_by).uniq
  end

  def test_a_stack_overflow_leaves_no_dead_frames
    stream = traced_with(<<~RUBY, only: ["drop", "after"])
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
    assert_equal [[], []], stream.spans_named("Object#after").map(&:ancestors)
    assert_operator stream.calls["Object#drop"], :>, 1000
  end

  def test_threads_fibers_and_a_forked_child
    streams = traced(<<~RUBY, before: "Rrtrace::Native.select(['work'], [], [])")
      def work(n) = n.zero? ? 0 : work(n - 1)
      def other = 1
      3.times.map { Thread.new { 10.times { work(2); other; Thread.pass } } }.each(&:join)
      f = Fiber.new { work(1); Fiber.yield; work(0) }
      2.times { f.resume }
      Process.wait(fork { other; work(4); eval("def late = work(0)"); late })
      work(0)
    RUBY
    assert_equal [{"Object#work" => 94}, {"Object#work" => 6}], streams.map(&:calls)
    assert_equal [:return], streams.flat_map(&:spans).map(&:closed_by).uniq
    assert_equal 5, streams.first.spans.map(&:fiber).uniq.size
  end

  def test_frames_that_are_open_at_the_start_are_the_chosen_ones
    streams = traced(<<~RUBY, before: FOO)
      Rrtrace::Native.leave(5000)
      def begun
        Rrtrace::Native.select(["down", "Fresh"], [], [])
        Rrtrace::Native.join(ENV.fetch("SESSION"), 65536, false, true, false)
      end
      def between(n) = [1].each { down(n) }
      def down(n) = n.zero? ? begun : between(n - 1)
      class Fresh; def fresh = 1; end
      down(3)
      Fresh.new.fresh
      between(0) if false
    RUBY
    stream = streams.last
    assert_equal ["Object#down"] * 4, stream.spans.select(&:at_start).map(&:name)
    assert_equal [:return], stream.spans.map(&:closed_by).uniq
    assert_equal({"Fresh#fresh" => 1}, stream.calls)
  end

  def test_each_session_of_a_program_has_its_own_choice
    streams = traced(<<~RUBY, before: FOO)
      Rrtrace::Native.leave(5000)
      again = lambda do |*choice|
        Rrtrace::Native.select(*choice)
        Rrtrace::Native.join(ENV.fetch("SESSION"), 65536, false, true, false)
        all_of_it
        Rrtrace::Native.leave(5000)
        all_of_it
      end
      again.call(["Foo#other"], [], [])
      again.call(["Foo.make"], [], [])
      again.call([], [], [])
      again.call(["Foo#bar"], [], [])
    RUBY
    assert_equal [{"Foo#other" => 2}, {"Foo.make" => 1}], streams[1..2].map(&:calls)
    assert_equal [1, 2, 1], %w[Foo.make Foo#other Elsewhere#bar].map { streams[3].calls[_1] }
    assert_equal({"Foo#bar" => 1}, streams[4].calls)
  end

  def test_nothing_is_left_in_the_code_when_tracing_ends
    stream = traced_with(<<~'RUBY', before: FOO, only: ["Foo", "Elsewhere"])
      require "objspace"
      hooks = -> { 3.times { GC.start }; ObjectSpace.count_tdata_objects.fetch(:"rrtrace/target", 0) }
      all_of_it
      GC.compact if GC.respond_to?(:compact)
      begun = hooks.call
      Rrtrace::Native.leave(5000)
      puts "POINTS #{TracePoint.stat.values.inspect} #{ObjectSpace.each_object(TracePoint).count(&:enabled?)}"
      puts "HOOKS #{begun} #{hooks.call}"
      TracePoint.new(:call) { |tp| puts "SEEN #{tp.method_id}" }.enable(target: Foo.instance_method(:other)) { all_of_it }
    RUBY
    assert_equal 2, stream.calls["Foo#other"]
    assert_includes @ran.out, "POINTS [[0, 0]] 0"
    begun, left = @ran.out[/HOOKS (.*)/, 1].split.map(&:to_i)
    assert_operator begun, :>, 100
    assert_operator left, :<, 10, "but for what the GC takes for an address on the stack"
    assert_equal 2, @ran.out.scan("SEEN other").size
  end

  def test_the_programs_own_tracepoints_go_on_beside_ours
    stream = traced_with(<<~'RUBY', before: FOO, only: ["Foo#other"])
      seen = Hash.new(0)
      all_of_it
      both = [Foo.instance_method(:other), Foo.instance_method(:bar), Elsewhere.instance_method(:bar)]
      points = both.map { |m| TracePoint.new(:call, :return) { |tp| seen[[tp.method_id, tp.event]] += 1 }.tap { _1.enable(target: m) } }
      all_of_it
      points.each(&:disable)
      all_of_it
      TracePoint.new(:call) { |tp| seen[:all] += 1 }.enable { all_of_it }
      all_of_it
      puts "SEEN #{seen.inspect}"
    RUBY
    assert_equal({"Foo#other" => 10}, stream.calls)
    assert_includes @ran.out, "SEEN {[:bar, :call]=>2, [:other, :call]=>2, [:other, :return]=>2, [:bar, :return]=>2, :all=>11}"
  end

  def test_a_tracepoint_that_the_program_has_put_on_all_code_still_sees_all_when_our_hooks_go
    stream = traced_with(<<~'RUBY', before: FOO, only: ["Foo#other"])
      seen = 0
      point = TracePoint.new(:call, :return) { |tp| seen += 1 if tp.path == __FILE__ }
      point.enable
      2.times { all_of_it } # at the first one what is not chosen loses its hook
      Rrtrace::Native.leave(5000)
      all_of_it
      point.disable
      puts "SEEN #{seen}"
    RUBY
    assert_equal({"Foo#other" => 4}, stream.calls)
    assert_includes @ran.out, "SEEN 66", "22 each time"
  end

  def test_a_tracepoint_that_takes_itself_off_the_method_that_it_was_put_on
    traced(<<~'RUBY', before: "Rrtrace::Native.select(['Foo'], [], [])")
      class Foo
        def left_out = 1
        200.times { |i| class_eval "def call#{i} = 1" }
      end
      names = [:left_out] + 200.times.map { :"call#{_1}" }
      Rrtrace::Native.leave(5000)
      Rrtrace::Native.select(["/^Foo#none/"], [], []) # at its call each method is found to be left out
      Rrtrace::Native.join(ENV.fetch("SESSION"), 65536, false, true, false)
      seen = 0
      names.each do |name|
        point = TracePoint.new(:call) { seen += 1; point.disable }
        point.enable(target: Foo.instance_method(name))
      end
      20.times { names.each { Foo.new.public_send(_1) }; Array.new(1000) { "of the size of a list of hooks" }; GC.start }
      puts "SEEN #{seen}"
    RUBY
    assert_includes @ran.out, "SEEN 201"
  end

  def test_what_interrupts_the_program_while_its_new_code_is_hooked_is_not_lost
    traced_with(<<~'RUBY', only: ["Foo#bar"])
      long = "class Foo\n#{"def bar(x) = [x].each { |y| y }\n" * 1500}end"
      main = Thread.current
      lost = 20.times.count do |i|
        thread = Thread.new { sleep 0.005 + i * 0.002; main.raise("enough") }
        begin
          eval(long) while thread.alive?
          thread.join
          sleep 0.001
          true
        rescue RuntimeError
          false
        end
      end
      thread = Thread.new { loop { eval(long) } }
      sleep 0.05
      puts "LOST #{lost}, #{thread.kill.join(5) ? "ended" : "runs on"}"
    RUBY
    assert_includes @ran.out, "LOST 0, ended"
  end

  def test_what_interrupts_the_start_is_raised_when_it_is_done
    streams = traced(<<~'RUBY', before: "Rrtrace::Native.select(['Foo'], [], [])")
      Rrtrace::Native.leave(5000)
      class Foo; def call = 1; end
      5000.times { |i| Foo.class_eval("def m#{i} = 1") }
      trap("USR1") { raise "enough" }
      10.times do |i|
        killer = fork { sleep 0.05 + i * 0.003; Process.kill("USR1", Process.ppid) }
        begin
          sleep 0.05
          Rrtrace::Native.join(ENV.fetch("SESSION"), 65536, false, true, false)
          sleep 1
        rescue RuntimeError => error
          puts "SAID #{error.message} #{Rrtrace::Native.joined?}"
        end
        Process.wait(killer)
        Foo.new.call if Rrtrace::Native.joined?
        Rrtrace::Native.leave(5000)
      end
    RUBY
    assert_equal 10, @ran.out.scan("SAID enough").size
    assert_equal @ran.out.scan("SAID enough true").size, streams.sum { _1.calls["Foo#call"] }
  end

  def test_a_ractor_that_ran_already_is_left_alone
    streams = traced(<<~RUBY, before: "#{FOO}Rrtrace::Native.select(['Foo#bar?'], [], [])")
      Rrtrace::Native.leave(5000)
      Warning[:experimental] = false
      ractor = Ractor.new do
        until_s = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 2
        foo = Foo.new
        1000.times { foo.bar?; foo.other } while Process.clock_gettime(Process::CLOCK_MONOTONIC) < until_s
      end
      sleep 0.2
      Rrtrace::Native.join(ENV.fetch("SESSION"), 65536, false, true, false)
      foo = Foo.new
      100_000.times { foo.bar?; foo.other }
      Rrtrace::Native.leave(5000)
      ractor.take
    RUBY
    assert_equal({"Foo#bar?" => 100_000}, streams[1].calls)
  end

  def test_code_that_dies_is_let_go_and_stress_of_the_gc_does_no_harm
    stream = traced_with(<<~'RUBY', only: ["Kept#call", "*#dying"])
      class Kept; def call = 1; end
      GC.stress = true
      3.times { Kept.new.call; eval("class Kept; def call = 2; def to_s = ''; end"); Kept.new.to_s }
      GC.stress = false
      count = -> { GC.start; ObjectSpace.count_imemo_objects[:imemo_iseq] }
      require "objspace"
      begun = nil
      45.times do
        300.times { |i| Class.new { eval("def dying = 1; def other = 2; [1].each { |x| define_method(:made) { x } }"); new.dying; new.other; new.made } }
        begun ||= count.call
      end
      puts "GROWN #{count.call - begun}"
      GC.compact if GC.respond_to?(:compact)
      Kept.new.call
      Rrtrace::Native.leave(5000)
      GC.compact if GC.respond_to?(:compact)
      Kept.new.call
    RUBY
    assert_equal 4, stream.calls["Kept#call"]
    assert_equal 13_500, stream.calls.values.sum - 4
    assert_operator @ran.out[/GROWN (-?\d+)/, 1].to_i, :<, 35_000, "of some 65,000 pieces of code: no more than the cache of methods holds"
  end

  def test_code_that_has_a_hook_stays_where_it_is_when_the_heap_is_compacted
    skip "this Ruby does not compact" unless GC.respond_to?(:verify_compaction_references)
    stream = traced_with(<<~'RUBY', only: ["/^Foo#chosen/"], slots: 1 << 18)
      require "objspace"
      class Foo
        500.times { |i| class_eval "def left_out#{i} = 1\ndef chosen#{i} = 1" }
      end
      hooks = -> { 3.times { GC.start }; ObjectSpace.count_tdata_objects[:"rrtrace/target"] }
      begun = hooks.call
      GC.verify_compaction_references(expand_heap: true, toward: :empty)
      foo = Foo.new
      2.times { 500.times { |i| foo.public_send("left_out#{i}"); foo.public_send("chosen#{i}") } }
      puts "GONE #{begun - hooks.call}"
      GC.verify_compaction_references(expand_heap: true, toward: :empty)
      Rrtrace::Native.leave(5000)
      puts "LEFT #{hooks.call}"
    RUBY
    assert_equal 1000, stream.calls.values.sum
    assert_operator @ran.out[/GONE (\d+)/, 1].to_i, :>=, 490
    assert_operator @ran.out[/LEFT (\d+)/, 1].to_i, :<, 10
  end

  def test_code_that_dies_with_its_hooks_leaves_no_memory_behind
    traced_with(<<~'RUBY', only: ["Foo"])
      class Foo; end
      grow = lambda do |count|
        count.times { |i| Foo.class_eval("def m#{i % 7}; end") }
        GC.start
        File.read("/proc/self/status")[/VmRSS:\s+(\d+)/, 1].to_i
      end
      begun = grow.call(100_000)
      puts "GROWN #{grow.call(60_000) - begun}"
    RUBY
    assert_operator @ran.out[/GROWN (-?\d+)/, 1].to_i, :<, 1200, "KiB; a list of hooks for each makes more than 2000"
  end

  def test_yjit_compiles_what_is_not_chosen_and_sees_what_is
    skip "this Ruby has no YJIT" unless defined?(RubyVM::YJIT)
    stream = traced_with(<<~'RUBY', before: FOO + "2000.times { all_of_it }", only: ["Foo#other"], flags: ["--yjit", "--yjit-call-threshold=5"])
      2000.times { all_of_it }
      class Late; def other = 1; def call = other; end
      2000.times { Late.new.call }
      puts "COMPILED #{RubyVM::YJIT.runtime_stats[:compiled_iseq_count] || RubyVM::YJIT.enabled?}"
    RUBY
    assert_equal({"Foo#other" => 4000}, stream.calls)
  end

  def test_yjit_forgets_what_it_compiled_between_two_sessions
    skip "this Ruby has no YJIT" unless defined?(RubyVM::YJIT)
    streams = traced(<<~RUBY, before: "#{FOO}Rrtrace::Native.select(['Foo.make'], [], [])", flags: ["--yjit", "--yjit-call-threshold=5"])
      200.times { all_of_it }
      Rrtrace::Native.leave(5000)
      2000.times { all_of_it }
      Rrtrace::Native.select(["Foo#other"], [], [])
      Rrtrace::Native.join(ENV.fetch("SESSION"), 65536, false, true, false)
      2000.times { all_of_it }
    RUBY
    assert_equal [{"Foo.make" => 200}, {"Foo#other" => 4000}], streams.map(&:calls)
  end

  def test_blocks_of_chosen_methods_when_asked_for
    stream = traced_with(<<~RUBY, only: ["Foo#run", "Foo#made"], blocks: true)
      class Foo
        def run = [1, 2].each { |x| touch { x } }
        def touch = yield
        define_method(:made) { [1].each { |x| x } }
      end
      class Other; def run = [1, 2].each { |x| x }; end
      2.times { Foo.new.run; Other.new.run; Foo.new.made }
    RUBY
    assert_equal({"Foo#run" => 2, "Foo#made" => 2, "block in Foo#run" => 8, "block in Foo#made" => 4}, stream.calls)
    assert_equal [:return], stream.spans.map(&:closed_by).uniq
  end

  def test_blocks_of_methods_that_share_their_code
    assert_calls({"Second#run" => 2, "block in Second#run" => 2}, <<~RUBY, only: ["Second"], blocks: true)
      class First; end
      class Second; end
      [First, Second].each do |c|
        c.class_eval { def run = [1].each { |x| x } }
        2.times { c.new.run }
      end
    RUBY
  end

  def test_folders
    inside = write("app/models/inside.rb", "class Inside; def a = [1].each { |x| b }; def b = 1; define_method(:c) { b }; end\n" \
      "class_eval_target = Inside\nclass_eval_target.class_eval('def d = 1', __FILE__, 9)\n")
    outside = write("apple/outside.rb", "class Outside; def a = 1; end\n")
    run = "load #{inside.inspect}; load #{outside.inspect}; i = Inside.new; i.a; i.c; i.d; Outside.new.a"
    wanted = {"Inside#a" => 1, "Inside#b" => 2, "Inside#c" => 1, "Inside#d" => 1}
    assert_calls(wanted, run, folders: [File.realpath(temp_path("app"))])
    assert_calls(wanted, run, folders: [File.realpath(temp_path("app"))], env: {"RRTRACE_TEST_NO_TARGETS" => "1"})
    assert_calls(wanted, run.delete_prefix("load #{inside.inspect}; "), before: "load #{inside.inspect}", folders: [File.realpath(temp_path("app"))])
    assert_calls({"Inside#b" => 2}, run, folders: [File.realpath(temp_path("app"))], only: ["Inside"], except: ["a", "c", "d"])
  end

  def test_where_code_can_not_be_hooked_by_hand_the_choice_is_the_same
    %w[RRTRACE_TEST_NO_TARGETS RRTRACE_TEST_COUNT_POSITIONS].each do |way|
      assert_calls({"Foo#bar" => 2, "Space::Foo#bar" => 2}, "2.times { all_of_it; [1].sum }", before: FOO, only: ["*Foo#bar", "sum"], env: {way => "1"})
      stream = traced_with("def outer = 3.times { other } && inner\ndef other = [1].first\ndef inner = 1\nouter", only: ["outer", "inner"], env: {way => "1"})
      assert_equal [["Object#outer"]], stream.spans_named("Object#inner").map(&:ancestors)
      assert_equal [:return], stream.spans.map(&:closed_by).uniq
    end
  end

  def test_methods_that_only_stand_for_c_are_left_out_and_those_of_rubys_own_ruby_are_not
    code = "20.times { |i| i.class; i.zero?; i.abs; [i].first; i.then { }; i.tap { } }"
    assert_calls({"Integer#times" => 1, "Kernel#then" => 20, "Kernel#tap" => 20}, code, only: ["Kernel", "Integer", "Array"])
  end

  def test_what_is_left_out_sends_nothing_and_loses_its_hook_at_its_first_call
    stream = traced_with(<<~'RUBY', only: ["/^Chosen#/"])
      require "objspace"
      class Chosen; def call = 1; end
      class Other
        200.times { |i| class_eval "def m#{i} = [1].each { |x| x }", "other.rb", i + 1 }
      end
      hooks = -> { 3.times { GC.start }; ObjectSpace.count_tdata_objects[:"rrtrace/target"] }
      armed = hooks.call
      other = Other.new
      all = Other.instance_methods(false)
      10.times { all.each { |name| other.public_send(name) } }
      puts "ARMED #{armed - hooks.call}"
      Chosen.new.call
    RUBY
    assert_equal({"Chosen#call" => 1}, stream.calls)
    assert_operator stream.kinds.count(:return), :<=, 3
    assert_operator @ran.out[/ARMED (\d+)/, 1].to_i, :>=, 380, "200 methods and 200 blocks had hooks, and have none any more"
  end

  def test_this_rubys_code_is_laid_out_as_we_know_it
    skip "not known of Ruby #{RUBY_VERSION}" unless RUBY_VERSION.start_with?("3.3.")
    ran = run_ruby('require "rrtrace/rrtrace"; print Rrtrace::Native.facts.fetch(:code_verified)')
    assert_equal "true", ran.out
  end

  def test_what_hostile_classes_answer_does_not_matter
    assert_calls({"Hostile#call" => 2, "Hostile.method_added" => 1}, <<~RUBY, only: ["Hostile"])
      class Hostile
        def self.name = raise("no")
        def self.method_added(*) = nil
        def self.instance_method(*) = raise("no")
        def self.hash = raise("no")
        def call = 1
      end
      class Naked < BasicObject; def call = 1; end
      2.times { Hostile.new.call; Naked.new.call }
      def Hostile.inspect = raise("no")
    RUBY
  end

  def test_ractors_call_chosen_methods_too
    streams = traced(<<~RUBY, before: "Rrtrace::Native.select(['work'], [], [])", flags: ["-W0"])
      def work(n) = n.zero? ? 0 : work(n - 1)
      def other = 1
      work(0)
      Ractor.new { 10.times { work(2); other } }.take
      10.times { other }
      work(0)
    RUBY
    assert_equal [{"Object#work" => 2}, {"Object#work" => 30}], streams.map(&:calls)
  end

  def test_a_session_can_end_while_a_ractor_is_in_chosen_code_and_another_begin
    streams = traced(<<~RUBY, before: "Rrtrace::Native.select(['work'], [], [])", flags: ["-W0"])
      def work = 1
      ractor = Ractor.new do
        2.times { work; Ractor.yield(1); Ractor.receive }
        work
      end
      ractor.take
      Rrtrace::Native.leave(5000)
      ractor << 1
      ractor.take
      Rrtrace::Native.select([], [], [])
      Rrtrace::Native.join(ENV.fetch("SESSION"), 65536, false, true, false)
      3.times { work }
      ractor << 1
      ractor.take
    RUBY
    assert_equal [0, 1, 3], streams.map { _1.calls["Object#work"] }.first(3), "the main Ractor's two, and between them the other's"
  end
end
