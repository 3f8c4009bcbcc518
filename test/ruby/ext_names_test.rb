# frozen_string_literal: true

require_relative "ext_help"

# Names come from the VM, whatever the program overrides, and say who owns the body.
class ExtNamesTest < Minitest::Test
  include ExtHelp

  def test_a_temporary_name_lasts_until_the_constant_is_set
    stream = traced_one(<<~RUBY)
      klass = Class.new { def meth = 1 }
      klass.set_temporary_name("Fake<x>")
      klass.new.meth
      Real = klass
      3.times { klass.new.meth }
    RUBY
    assert_equal({"Fake<x>#meth" => 1, "Real#meth" => 3}, stream.calls(:ruby).slice("Fake<x>#meth", "Real#meth"))
  end

  def test_memory_for_names_of_anonymous_classes_has_a_bound
    stream = traced_one(<<~RUBY, slots: 1 << 20)
      70_000.times { Class.new { def meth = 1 }.new.meth }
      def last = 2
      last
    RUBY
    assert_equal 70_000, stream.calls(:ruby).sum { |name, count| name.end_with?("#meth") ? count : 0 }
    assert_equal 1, stream.calls["Object#last"]
    numbers = stream.defines(:method).map(&:first)
    assert_equal numbers.uniq, numbers, "a number is given once, also after the table was emptied"
  end

  def test_names_tell_owner_and_kind
    stream = traced_one(<<~RUBY)
      module Mod
        class Klass
          def meth = 1
          def self.meth = 2
          alias other meth
        end
        def self.mod = 3
      end
      def top = 4
      Mod::Klass.new.meth
      Mod::Klass.new.other
      Mod::Klass.meth
      Mod.mod
      top
      o = Object.new
      def o.single = 5
      o.single
      Class.new { def anon = 6 }.new.anon
      Module.new { def self.anon_mod = 7 }.anon_mod
      class << Mod::Klass
        class << self
          def meta = 8
        end
      end
      Mod::Klass.singleton_class.meta
      class Mine < Module; end
      M = nil
      Class.new { include Mine.new { def mine = 9 } }.new.mine
    RUBY
    calls = stream.calls(:ruby)
    assert_equal 2, calls["Mod::Klass#meth"], "an alias shows the name it was defined under"
    assert_equal [1] * 4, calls.values_at("Mod::Klass.meth", "Mod.mod", "Object#top", "#<Object>.single")
    assert_equal 1, calls["#<Class:Mod::Klass>.meta"]
    names = calls.keys
    assert(names.any?(/\A#<Class:0x\h{16}>#anon\z/), names.inspect)
    assert(names.any?(/\A#<Module:0x\h{16}>\.anon_mod\z/), names.inspect)
    assert(names.any?(/\A#<Mine:0x\h{16}>#mine\z/), names.inspect)
  end

  def test_refinements_name_what_they_refine
    stream = traced_one(<<~RUBY, before: "module Loud; refine(String) { def shout = upcase }; end; using Loud")
      "x".shout
    RUBY
    assert_equal 1, stream.calls(:ruby)["#<refinement:String@Loud>#shout"]
  end

  def test_a_class_that_gets_its_name_later_shows_it_from_then_on
    stream = traced_one("c = Class.new { def act = 1 }\n2.times { c.new.act }\nNamed = c\n3.times { c.new.act }")
    calls = stream.calls(:ruby)
    assert_equal 3, calls["Named#act"]
    assert_equal 2, calls.find { |name, _| name.match?(/\A#<Class:0x\h+>#act/) }.last
  end

  def test_no_method_of_the_program_runs_to_find_a_name
    stream = traced_one(<<~RUBY)
      class Evil < BasicObject
        %i[name to_s inspect hash == class singleton_class object_id frozen?].each do |m|
          define_singleton_method(m) { |*| ::Kernel.raise "\#{m} ran" }
          define_method(m) { |*| ::Kernel.raise "\#{m} ran" }
        end
        def act = 1
        def self.react = 2
      end
      class EvilThread < Thread
        def name = raise("name ran")
        def inspect = raise("inspect ran")
      end
      Evil.new.act
      Evil.react
      EvilThread.new { Evil.react }.join
      e = Evil.new
      class << e
        def single = 3
      end
      e.single
    RUBY
    assert_equal 1, stream.calls["Evil#act"]
    assert_equal 2, stream.calls["Evil.react"]
    assert_equal 1, stream.calls["#<Evil>.single"]
    assert_equal 0, stream.calls["EvilThread#name"]
  end

  def test_bytes_of_names_come_through_as_they_are
    stream = traced_one(<<~'RUBY')
      class Wörter
        def 計算 = 1
        define_method("with space\n") { 2 }
        define_method("\xFF\x00bin".b) { 3 }
        define_method("é" * 40_000) { 4 }
      end
      w = Wörter.new
      w.計算
      w.public_send("with space\n")
      w.public_send("\xFF\x00bin".b)
      w.public_send("é" * 40_000)
    RUBY
    names = stream.methods_by_number.values.map { _1.name.b }
    assert_includes names, "Wörter#計算".b
    assert_includes names, "Wörter#with space\n".b
    assert_includes names, "Wörter#\xFF\x00bin".b
    long = names.max_by(&:bytesize)
    assert_operator long.bytesize, :<=, 64 * 1024
    text = long.dup.force_encoding("UTF-8")
    assert_predicate text, :valid_encoding?, "cut at a character"
    assert text.end_with?("éé…")
  end

  def test_methods_say_where_they_are_defined
    stream = traced_one("def here = 1\nhere\n[3].sum")
    here = stream.methods_by_number.values.find { _1.name == "Object#here" }
    assert_equal [:ruby, temp_path("traced.rb"), 5], [here.kind, here.path, here.line]
    sum = stream.methods_by_number.values.find { _1.name == "Array#sum" }
    assert_equal [:c, "", 0], [sum.kind, sum.path, sum.line]
  end

  def test_classes_that_come_and_go_never_lend_their_names
    stream = traced_one(<<~RUBY)
      300.times do |i|
        k = Class.new { eval "def m_\#{i} = leaf_\#{i}; def leaf_\#{i} = \#{i}" }
        k.new.public_send("m_\#{i}")
        k = nil
        GC.start if i % 50 == 0
      end
    RUBY
    counts = Hash.new(0)
    stream.calls(:ruby).each { |name, n| counts[name[/#(\w+)\z/, 1]] += n }
    300.times { |i| assert_equal [1, 1], counts.values_at("m_#{i}", "leaf_#{i}") }
  end

  # Everything that one program may hold on to is the small cache: no class outlives its last reference because it was traced.
  def test_no_class_is_kept_alive_beyond_the_cache
    traced_one(<<~RUBY, slots: 1 << 20)
      class Brief; def self.touch = new.act; end
      def churn(n) = n.times { |i| Class.new(Brief) { def act = self.class.hash }.touch }
      churn(20_000)
      def alive = ObjectSpace.each_object(Class).count { |c| Brief > c }
      def others(n) = n.times { |i| instance_eval("def o\#{i} = 1"); public_send("o\#{i}") }
      churn(1)
      GC.start
      p alive
      others(60_000)
      churn(1)
      GC.start
      p alive
      weak = ObjectSpace::WeakMap.new
      weak[1] = Class.new(Brief) { def act = 1 }
      weak[1].touch
      others(60_000)
      GC.start
      p weak.key?(1)
    RUBY
    after_churn, after_others, weak = @ran.out.lines(chomp: true)
    assert_operator after_churn.to_i, :<=, 8192 + 100
    assert_operator after_others.to_i, :<=, 100, "what was overwritten in the cache may die"
    assert_equal "false", weak
  end

  def test_a_method_defined_anew_is_another_method
    stream = traced_one("def twice = 1\ntwice\ndef twice = 2\ntwice")
    lines = stream.methods_by_number.values.select { _1.name == "Object#twice" }.map(&:line)
    assert_equal [5, 7], lines
  end

  def test_names_hold_under_gc_stress_and_compaction
    stream = traced_one(<<~RUBY)
      classes = 40.times.map { |i| Object.const_set("C\#{i}", Class.new { eval "def m\#{i} = 1" }) }
      GC.stress = true
      classes.first(10).each_with_index { |c, i| c.new.public_send("m\#{i}") }
      Thread.new { C0.new.m0 }.join
      Fiber.new { C1.new.m1 }.resume
      GC.stress = false
      GC.auto_compact = true rescue nil
      3.times do
        GC.compact rescue nil
        classes.each_with_index { |c, i| c.new.public_send("m\#{i}") }
      end
    RUBY
    40.times { |i| assert_equal 3 + ((i < 10) ? 1 : 0) + ((i < 2) ? 1 : 0), stream.calls["C#{i}#m#{i}"], "C#{i}" }
    assert_equal %w[m], stream.calls.keys.grep(/\AC\d+#m/).map { _1[/#(\w)/, 1] }.uniq
  end
end
