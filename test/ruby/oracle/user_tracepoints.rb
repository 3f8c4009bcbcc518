# counts: ruby
# right: Lab#blown 0
# The program traces itself: what hooks call is invisible, targeted ones, ones that raise, and the old interface.
class Lab
  attr_reader :seen
  def initialize = @seen = []
  def sample(i) = inner(i)
  def inner(i) = Probe.here
  def in_hook = 1
  def in_reentry = 2
  def targeted = 3
  def blown = 4
  def after = Probe.here
end
lab = Lab.new
tp = TracePoint.new(:call, :return, :line, :b_call, :raise, :class, :c_call) { |t| lab.in_hook if t.event == :call }
tp.enable { 5.times { |i| lab.sample(i) } }
lab.after
busy = false
tp2 = TracePoint.new(:call) do |t|
  next if busy || t.method_id != :sample
  busy = true
  TracePoint.allow_reentry { lab.in_reentry }
  busy = false
end
tp2.enable { 4.times { |i| lab.sample(i) } }
tp3 = TracePoint.new(:call, :line) { |t| lab.seen << t.method_id }
tp3.enable(target: lab.method(:targeted)) { 3.times { lab.targeted } }
tp5 = TracePoint.new(:call) { |t| lab.seen << 1 }
tp5.enable(target_thread: Thread.current) { lab.sample(1) }
set_trace_func(proc { |ev, *| lab.seen << :stf if ev == "call" })
2.times { |i| lab.sample(i) }
set_trace_func(nil)
Thread.current.set_trace_func(proc { |*| lab.seen })
lab.sample(1)
Thread.current.set_trace_func(nil)
6.times { lab.after }
