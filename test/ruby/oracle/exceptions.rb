# again: yjit
# Through many frames, through C, out of ensure, again from rescue, from blocks, and nested.
class Own < StandardError
  def initialize(m = "own") = super
  def message = "m"
end
def floor(n) = raise(n.odd? ? Own : "x")
def fall(n) = n.zero? ? floor(n) : fall(n - 1)
def through_c(n) = [n].each { |x| x.zero? ? floor(x) : [x].map { |y| through_c(y - 1) } }
def safe(n)
  fall(n)
rescue => e
  Probe.here
  e
end
def again(n)
  fall(n)
rescue => e
  raise Own rescue Probe.here
  raise
end
def ensured(n)
  fall(n)
ensure
  Probe.here
end
def replaced
  fall(3)
ensure
  return Probe.here
end
def in_else
  1
rescue
  2
else
  Probe.here
ensure
  Probe.here
end
def lost
  yield
rescue ArgumentError
  0
end
def wrapped
  lost { fall(2) }
rescue RuntimeError => e
  Probe.here
  begin
    raise Own, cause: e
  rescue Own
    Probe.here
  end
end
def c_error = Integer("x")
def no_method = nil.nothing
def zero = 1 / 0
def frozen = "x".freeze << "y"
def arity(a) = a
100.times { |i| safe(i) }
(through_c(20) rescue Probe.here)
(again(5) rescue Probe.here)
(ensured(5) rescue Probe.here)
replaced
in_else
wrapped
[:c_error, :no_method, :zero, :frozen].each { |m| (method(m).call rescue Probe.here) }
(arity(1, 2) rescue Probe.here)
begin
  [3, 2, 1].sort_by { |x| fall(x) }
rescue
  Probe.here
end
begin
  {a: 1}.each { |k, v| [1].each { fall(2) } }
rescue
  Probe.here
end
def comparison = [Object.new, Object.new].sort
(comparison rescue Probe.here)
S = Struct.new(:a)
def scratch = S.new(1).freeze.a = 2
10.times { (scratch rescue Probe.here) }
x = Class.new { attr_writer :b }.new.freeze
10.times { ((x.b = 1) rescue Probe.here) }
def in_hash = Hash.new { |h, k| fall(2) }[1]
(in_hash rescue Probe.here)
def to_str_fails = File.join(Class.new { def to_str = raise("no") }.new)
(to_str_fails rescue Probe.here)
Probe.here
