# again: mn
# counts: ruby
# Thousands of threads, most of which are gone before anybody could ask for their name.
def work(n) = n.zero? ? 1 : work(n - 1)
class Own < Thread
  def initialize(n) = super() { work(n) }
end
2000.times.each_slice(50) { |part| part.map { |i| Thread.new { work(i % 5) } }.each(&:join) }
100.times { Thread.start { work(1) } }
Thread.list.each { |t| t.join unless t == Thread.current }
50.times.map { |i| Thread.fork(i) { |n| work(n % 3) } }.each(&:value)
30.times { |i| Own.new(i % 3).join }
10.times.map { Thread.new { 5.times.map { Thread.new { work(2) } }.each(&:join) } }.each(&:join)
Probe.here
