# again: mn
# again: yjit
# open: Fiber#transfer
# open: Object#park
# open: Fiber.yield
# counts: all
# A stack for each fiber, also for those that are given up.
def park(n) = n.zero? ? Fiber.yield : park(n - 1)
def step(n) = n.zero? ? Probe.here : step(n - 1)
def run(fiber) = fiber.resume
def nested(n)
  return Probe.here if n.zero?
  Fiber.new { nested(n - 1); Probe.here }.resume
  Probe.here
end
def transfer_to(f) = f.transfer
def die = raise("x")

parked = 6.times.map { |i| Fiber.new { park(i); step(i) } }
parked.each { |f| run(f) }
step(3)
parked.first(3).each { |f| run(f) }
nested(5)
main = Fiber.current
back = Fiber.new { step(2); main.transfer; step(4); main.transfer }
2.times { transfer_to(back) }
(Fiber.new { die }.resume rescue step(1))
f = Fiber.new { begin; park(2); rescue; step(2); end }
f.resume
f.raise("y")
Fiber.new { Fiber.new { Fiber.new { step(1) }.resume }.resume; step(1) }.resume
g = Fiber.new(storage: {a: 1}) { Fiber[:a]; step(0) }
g.resume
Fiber.new { park(3) }.resume
k = Fiber.new { begin; park(3); ensure; step(1); end }
k.resume
k.kill if k.respond_to?(:kill)
40.times do
  Fiber.new { park(1) }.resume
  GC.start
  Fiber.new { step(1) }.resume
end
step(2)
