# counts: ruby
# open: Kernel#sleep
# open: Object#family
# open: Kernel#fork
# open: Object#down
# Children start with their parent's stack, and leave by every door.
def leaf = Probe.here
def child(n) = n.zero? ? leaf : child(n - 1)
def last_words = 1
def down(n)
  return down(n - 1) unless n.zero?
  pid = fork
  if pid
    Process.wait(pid)
  else
    child(3)
    exit
  end
end
def family
  leaf
  Process.wait(fork { child(2); Process.wait(fork { child(1) }); leaf })
  Process.wait(fork { child(1); exit 3 })
  Process.wait(fork { Thread.new { child(1) }.join; Fiber.new { leaf }.resume })
  Process.wait(fork { $stderr.reopen(File::NULL); child(0); raise "dies" })
end
4.times { Thread.new { sleep } }
down(12)
family
io = IO.popen("-")
io ? (io.read; io.close) : (child(2); exit)
Thread.new { Process.wait(fork { leaf }) }.join
Fiber.new { Process.wait(fork { leaf }) }.resume
leaf
