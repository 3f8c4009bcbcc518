# open: Object#walk
# open: Object#feed
# open: Enumerator::Yielder#<<
# open: Enumerator#each
# open: Enumerator::Generator#each
# open: Integer#times
# open: Array#each
# open: Enumerator::Yielder#yield
# Each external enumerator has a fiber of its own; peek, rewind, chains and lazies.
def walk(y) = 4.times { |i| feed(y, i) }
def feed(y, i)
  Probe.here
  y << i
end
def pull(e) = e.next
def leaf = Probe.here

e = Enumerator.new { |y| walk(y) }
f = Enumerator.new { |y| walk(y) }
3.times do
  pull(e)
  leaf
  pull(f)
end
e.peek
e.rewind
pull(e)
g = [1, 2].each
2.times { pull(g) }
begin
  pull(g)
rescue StopIteration
  leaf
end
loop { pull(g) }
z = (1..).lazy.map { |x| leaf; x * 2 }.select(&:even?).first(3)
chain = [1].each + [2]
chain.each { leaf }
gen = Enumerator.produce(1) { |x| leaf; x + 1 }
gen.take(3)
Enumerator::Product.new([1, 2], [3]).each { leaf } if defined?(Enumerator::Product)
inner = Enumerator.new { |y| w = Enumerator.new { |v| feed(v, 1) }; y << w.next }
inner.next
[4, 5].each_with_index.map { |x, i| leaf; x }
leaf
