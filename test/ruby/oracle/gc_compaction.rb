# counts: ruby
# Objects move under the tracer's feet.
classes = 60.times.map { |i| Object.const_set("Moved#{i}", Class.new { class_eval("def m#{i} = leaf#{i}; def leaf#{i} = 1; def self.s#{i} = new.m#{i}") }) }
garbage = 2000.times.map { +"x" }
objects = classes.map { |c| Object.new.tap { |o| o.define_singleton_method(:"one#{c.name}") { 1 } } }
call = lambda do
  classes.each_with_index { |c, i| c.public_send("s#{i}") }
  objects.each_with_index { |o, i| o.public_send("oneMoved#{i}") }
end
call.()
3.times do
  garbage = garbage.each_slice(2).map(&:first)
  GC.compact if GC.respond_to?(:compact)
  call.()
  GC.verify_compaction_references(toward: :empty, expand_heap: true) if GC.respond_to?(:verify_compaction_references)
  call.()
end
GC.auto_compact = true if GC.respond_to?(:auto_compact=)
10.times do
  GC.start
  call.()
end
