# counts: ruby
# A collection at every allocation, also those of the tracer.
classes = 12.times.map { |i| Object.const_set("Stressed#{i}", Class.new { class_eval("def m#{i} = 1") }) }
def pause = Fiber.yield
GC.stress = true
classes.each_with_index { |c, i| c.new.public_send("m#{i}") }
Class.new { def anonymous = 1 }.new.anonymous
Fiber.new { classes[0].new.m0 }.resume
f = Fiber.new { pause; classes[1].new.m1 }
2.times { f.resume }
Thread.new { classes[2].new.m2 }.join
(raise "x" rescue classes[3].new.m3)
GC.stress = false
