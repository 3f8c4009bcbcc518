# again: mn
# counts: ruby
# Threads ended and interrupted from outside, with ensure clauses on the way.
def leaf = Probe.here
def wait_forever(q)
  q << 1
  sleep
ensure
  leaf
end
def down(n, q) = n.zero? ? wait_forever(q) : down(n - 1, q)
def survive(q)
  q << 1
  sleep
rescue => e
  leaf
end
def own_exit = Thread.exit
def kill_self = Thread.current.kill
q = Queue.new
5.times do |i|
  t = Thread.new { down(i, q) }
  q.pop
  t.kill
  t.join
end
t = Thread.new { survive(q); leaf }
q.pop
t.raise("out")
t.join
Thread.new { own_exit }.join
Thread.new { kill_self }.join
masked = Thread.new do
  Thread.handle_interrupt(RuntimeError => :never) do
    q << 1
    Thread.pass until Thread.pending_interrupt?
    leaf
  end
rescue
  leaf
end
q.pop
masked.raise("later")
masked.join
dying = Thread.new { Thread.current.report_on_exception = false; down(0, q) }
q.pop
dying.raise(ArgumentError)
(dying.join rescue leaf)
leaf
