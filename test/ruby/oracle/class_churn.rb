# counts: ruby
# Thousands of short-lived classes; none may be kept, none may lend its name to another.
def count_alive = ObjectSpace.each_object(Class).count { |c| Brief > c }
class Brief; end
4000.times do |i|
  k = Class.new(Brief) { class_eval("def m#{i % 50} = 1") }
  k.new.public_send("m#{i % 50}")
  k.singleton_class
  o = Object.new
  o.instance_eval("def s#{i % 7} = 1")
  o.public_send("s#{i % 7}")
end
