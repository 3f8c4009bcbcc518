# returns: unbalanced  (CRuby says no RETURN for the frames that SystemStackError removes)
# counts: ruby
# any: Object#drop
# any: Object#through_block
# How deep it goes differs with what hooks need of the machine stack.
def leaf = Probe.here
def drop(n)
  $deepest = n
  drop(n + 1)
end
def through_block(n) = [n].each { |x| through_block(x + 1) }
def trap_it
  drop(0)
rescue SystemStackError
  leaf
end
def trap_block
  through_block(0)
rescue SystemStackError
  leaf
end
def with_ensure
  drop(0)
rescue SystemStackError
  0
ensure
  leaf
end
2.times { trap_it }
trap_block
with_ensure
Fiber.new { trap_it; leaf }.resume
Thread.new { trap_it; leaf }.join
leaf
