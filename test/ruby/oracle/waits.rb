# again: mn
# counts: ruby
# Mutex, Queue, SizedQueue, ConditionVariable, Monitor, sleep, join, IO: the GVL goes and comes in the middle of a stack.
require "monitor"
def leaf = Probe.here
def hold(m, n) = m.synchronize { n.zero? ? leaf : Thread.pass }
def produce(q, n) = n.times { |i| q << i }
def consume(q, n) = n.times { q.pop; leaf }
def signal(m, c, box) = m.synchronize { box << 1; c.signal }
def await(m, c, box) = m.synchronize { c.wait(m, 5) while box.empty?; leaf }
def enter(mon) = mon.synchronize { mon.synchronize { leaf } }
def read_pipe(r) = r.read(1)
def write_pipe(w) = w.write("x")
m = Mutex.new
8.times.map { |i| Thread.new { 20.times { |k| hold(m, (i + k) % 4) } } }.each(&:join)
q = SizedQueue.new(2)
[Thread.new { produce(q, 50) }, Thread.new { consume(q, 50) }].each(&:join)
c, box = ConditionVariable.new, []
[Thread.new { await(m, c, box) }, Thread.new { signal(m, c, box) }].each(&:join)
mon = Monitor.new
4.times.map { Thread.new { 10.times { enter(mon) } } }.each(&:join)
r, w = IO.pipe
t = Thread.new { read_pipe(r); leaf }
write_pipe(w)
t.join
Thread.new { sleep 0.001; leaf }.join
Thread.new { sleep; leaf }.tap { |s| Thread.pass until s.stop?; s.wakeup }.join
(m.lock; Thread.new { m.try_lock; leaf }.join; m.unlock)
begin
  m.synchronize { m.lock }
rescue ThreadError
  leaf
end
Thread.new { Thread.stop; leaf }.tap { |s| Thread.pass until s.stop?; s.run }.join
leaf
