# frozen_string_literal: true

# A pool of threads that work on jobs as Sidekiq's do: take one, ask a server for something, reckon a little, answer.
# THREADS JOBS. Prints jobs a second, and the ms of CPU that a job took.
require "json"
require "socket"

threads, count = ARGV.map { Integer(_1) }
server = TCPServer.new("127.0.0.1", 0)
port = server.addr[1]
# The server is another process: it waits a millisecond, as a database would, and says what it was told.
pid = fork do
  loop do
    Thread.new(server.accept) do |client|
      while (line = client.gets)
        sleep 0.001
        client.puts line
      end
    end
  end
end

class Job
  def initialize(number) = @number = number

  def perform(connection)
    connection.puts JSON.generate("job" => @number, "items" => Array.new(20) { |i| {"id" => i, "name" => "item #{i}"} })
    answer = JSON.parse(connection.gets)
    total = answer.fetch("items").sum { |item| item.fetch("id") * price(item.fetch("name")) }
    total.positive? && answer.fetch("job") == @number or raise "wrong answer"
  end

  def price(name) = name.split.last.to_i + 1
end

def work_off(jobs, results, port)
  connection = TCPSocket.new("127.0.0.1", port)
  while (job = jobs.pop)
    job.perform(connection)
    results.push(true)
  end
ensure
  connection&.close
end

begin
  jobs, results = Thread::Queue.new, Thread::Queue.new
  began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  cpu_began_ms = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :float_millisecond)
  pool = Array.new(threads) { Thread.new { work_off(jobs, results, port) } }
  count.times { |number| jobs.push(Job.new(number)) }
  jobs.close
  pool.each(&:join)
  raise "jobs were lost" unless results.size == count
  cpu_ms = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :float_millisecond) - cpu_began_ms
  puts "#{count / (Process.clock_gettime(Process::CLOCK_MONOTONIC) - began)} #{cpu_ms / count}"
ensure
  Process.kill(:KILL, pid)
  Process.wait(pid)
end
