# ruby: --yjit --yjit-call-threshold=5
# Methods that were compiled before anybody looked at them.
def fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)
def sum(list) = list.sum { |x| square(x) }
def square(x) = x * x
def deep(n) = n.zero? ? Probe.here : deep(n - 1)
fib(18)
50.times { |i| sum([1, 2, i]) }
10.times { deep(20) }
class Holder
  attr_accessor :value
  def each = 3.times { |i| yield i }
end
h = Holder.new
100.times { |i| h.value = i; h.value; h.each { |x| square(x) } }
