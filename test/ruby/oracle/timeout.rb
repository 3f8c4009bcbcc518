# counts: ruby
# open: Thread::Mutex#synchronize
# open: Thread::ConditionVariable#wait
# open: Thread::Mutex#sleep
require "timeout"
def leaf = Probe.here
def dial = sleep(5)
def down(n) = n.zero? ? dial : down(n - 1)
def give_up
  Timeout.timeout(0.02) { down(6) }
rescue Timeout::Error
  leaf
end
def in_time = Timeout.timeout(5) { leaf }
def with_ensure
  Timeout.timeout(0.02) do
    begin
      dial
    ensure
      leaf
    end
  end
rescue Timeout::Error
  leaf
end
def nested
  Timeout.timeout(5) do
    Timeout.timeout(0.02) { dial }
  end
rescue Timeout::Error
  leaf
end
2.times { give_up }
in_time
with_ensure
nested
leaf
