# Classes that get their name after their first calls, get another constant, or lose it.
made = Class.new { def act = 1 }
inner = Class.new { def inner = 2 }
made.const_set(:Inner, inner)
3.times { made.new.act; inner.new.inner }
Named = made
3.times { made.new.act; inner.new.inner }
Also = made
Object.send(:remove_const, :Named)
2.times { made.new.act }
if Class.method_defined?(:set_temporary_name)
  fake = Class.new { def fake = 3 }
  fake.set_temporary_name("fake<1>")
  fake.new.fake
  fake.set_temporary_name("fake<2>")
  fake.new.fake
  Fake = fake
  fake.new.fake
end
# Reloaded, as in development.
5.times do
  Object.send(:remove_const, :Page) if defined?(Page)
  Object.class_eval("class Page; def render = leaf; def leaf = 1; end")
  Page.new.render
end
def again = 1
again
def again = 2
again
self.class.send(:remove_method, :again)
(again rescue 0)
def again = 3
again
