# again: yjit
# break, next and return from blocks, procs and lambdas, through Ruby and C methods.
def leaf = Probe.here
def yielder = yield(1)
def twice
  yielder { |x| yield x }
  leaf
end
def return_from_each
  [1, 2, 3].each { |x| [x].map { |y| return leaf if y == 2 } }
end
def return_from_yield
  twice { return leaf }
end
def break_each = [1, 2].each { |x| break leaf }
def break_yield = twice { |x| break leaf }
def next_yield = twice { |x| next leaf }
def break_times = 5.times { |i| break if i == 2 }
def lambda_return = [lambda { return leaf }.call, leaf]
def proc_return
  pr = Proc.new { return leaf }
  twice { pr.call }
end
def orphan = Proc.new { return 1 }
def break_loop = loop { twice { break 1 } && break }
def with_ensure
  [1].each do
    begin
      return leaf
    ensure
      leaf
    end
  end
end
def symbol_proc = [1].each(&method(:takes))
def takes(x) = leaf
def sorted = [2, 1].sort { |a, b| return leaf }
def injected = (1..4).inject { |a, b| break leaf if b == 3; a + b }
def hashed = {a: 1}.each_pair { |k, v| return leaf }
def deep_break(n) = n.zero? ? yield : deep_break(n - 1) { yield }
def runs_deep = deep_break(10) { return leaf }
def from_define = define_jump
self.class.define_method(:define_jump) { [1].each { |x| return 3 } }
def gsubbed = "aaa".gsub("a") { return leaf }
3.times do
  return_from_each
  return_from_yield
  break_each
  break_yield
  next_yield
  break_times
  lambda_return
  proc_return
  (orphan.call rescue leaf)
  break_loop
  with_ensure
  symbol_proc
  sorted
  injected
  hashed
  runs_deep
  from_define
  gsubbed
  leaf
end
