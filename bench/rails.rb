# frozen_string_literal: true

# What does recording cost a Rails application under load, and a pool of threads that work on jobs?
#
#   bin/bench rails [--rounds N] [--requests N]
#
# Three servers (puma) with the application of bench/support/shop: untraced, with an empty hook on every call and return, and
# recorded by rrtrace. `ab` asks each of them in turn, half of the requests for a page and half for JSON, on loopback; while
# one is asked the others have nothing to do. Ratios are taken within a round, then their median over all rounds.
require "net/http"
require "optparse"
require "socket"
require "tmpdir"
require_relative "support/lab"

class RailsBench
  SHOP = File.join(__dir__, "support/shop")
  VARIANTS = {"untraced" => "untraced", "raw" => "one raw hook, empty", "record" => "rrtrace --no-window -o FILE"}.freeze
  PAGES = ["/articles?page=3", "/articles.json?page=5"].freeze
  Answer = Struct.new(:rate, :cpu_ms, :p50, :p99)

  def initialize(argv)
    @rounds = 7
    @requests = 150
    @started = []
    OptionParser.new do |parser|
      parser.on("--rounds N", Integer) { @rounds = _1 }
      parser.on("--requests N", Integer, "of each kind, a round [150]") { @requests = _1 }
    end.parse!(argv)
  end

  def run
    puts Lab.machine, ""
    @hooks = Lab.hooks
    @gems = Lab.gems or abort "bench/rails needs the gems of bench/Gemfile, which could not be installed."
    need_ab
    Dir.mktmpdir("rrtrace-bench") do |folder|
      @folder = folder
      ratios = [1, 5].to_h { |threads| [threads, load_servers(threads)] }
      pool = [1, 5].to_h { |threads| [threads, work_pools(threads)] }
      ratios.each { |threads, ratio| puts "rails.rps_ratio.#{threads}: #{ratio.round(3)}" }
      pool.each { |threads, ratio| puts "rails.pool_ratio.#{threads}: #{ratio.round(3)}" }
    end
  ensure
    @started.each { |pid| Process.kill(:KILL, pid) }
  end

  private

  def need_ab
    return if system("ab", "-V", out: File::NULL, err: File::NULL)

    if Process.uid.zero? && system("apt-get", "--version", out: File::NULL, err: File::NULL)
      warn "Installing apache2-utils, for ab …"
      system({"DEBIAN_FRONTEND" => "noninteractive"}, "apt-get", "install", "--yes", "--no-install-recommends", "apache2-utils",
        out: File::NULL, err: File::NULL) and return
    end
    abort "bench/rails needs ab: install apache2-utils (Debian) or httpd-tools."
  end

  # ---- Servers.

  def load_servers(threads)
    servers = VARIANTS.keys.to_h { |variant| [variant, start(variant, threads)] }
    servers.each_value { |server| ask(server, threads, 100) } # what is loaded on first use is loaded
    answers = rounds { |variant| ask(servers.fetch(variant), threads, @requests) }
    stop(servers)
    show("Rails, #{threads} puma thread#{"s" if threads > 1}", answers, "requests/s")
  end

  def start(variant, threads)
    port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
    log = File.join(@folder, "#{variant}.log")
    puma = [Lab::RUBY, File.join(@gems, "bin/puma"), "--environment", "production", "--threads", "#{threads}:#{threads}", "--workers", "0", "--no-config",
      "--bind", "tcp://127.0.0.1:#{port}", "--quiet", File.join(SHOP, "config.ru")]
    database = {"DATABASE_URL" => "sqlite3:#{File.join(@folder, "#{variant}#{threads}.sqlite3")}?pool=16"}
    pid = Process.spawn(environment(variant).merge(database), *before(variant, "server#{threads}"), *puma, chdir: SHOP, out: log, err: [:child, :out])
    @started << pid
    server = {pid: pid, port: port, log: log, variant: variant, recording: recording("server#{threads}")}
    PAGES.each { |page| wait_for(server, page) }
    server
  end

  def environment(variant)
    common = Lab::CLEAN.merge("BUNDLE_GEMFILE" => File.join(File.dirname(@gems, 2), "Gemfile"), "BUNDLE_PATH" => File.dirname(@gems, 2),
      "RAILS_ENV" => "production", "SHOP_FOLDER" => @folder, "RUBYOPT" => "-rbundler/setup", "WEB_CONCURRENCY" => nil)
    common["RUBYOPT"] += " #{raw_hook}" if variant == "raw"
    common
  end

  # Ruby's option for an empty hook.
  def raw_hook = "-I#{@hooks} -r#{File.join(__dir__, "support/hooks/raw")}"

  # What stands before the command that is measured.
  def before(variant, name)
    (variant == "record") ? Lab.rrtrace("--no-window", "-o", recording(name), "--") : []
  end

  def recording(name) = File.join(@folder, "#{name}.rrt")

  def wait_for(server, page)
    200.times do
      answer = Net::HTTP.get_response(URI("http://127.0.0.1:#{server[:port]}#{page}"))
      return if answer.is_a?(Net::HTTPOK) && answer.body.include?("Title")

      abort "the server answers #{answer.code}:\n#{File.read(server[:log])}\n#{answer.body}"
    rescue SystemCallError
      abort "the server ended:\n#{File.read(server[:log])}" if Process.wait(server[:pid], Process::WNOHANG)
      sleep 0.1
    end
    abort "the server does not answer:\n#{File.read(server[:log])}"
  end

  # One round's answer of one server. As many requests at once as there are threads.
  def ask(server, threads, count)
    cpu_ms = cpu_ms(server[:pid])
    parts = PAGES.map do |page|
      text = IO.popen(["ab", "-q", "-n", count.to_s, "-c", threads.to_s, "-s", "60", "http://127.0.0.1:#{server[:port]}#{page}"],
        err: [:child, :out], &:read)
      failed = text[/^Failed requests:\s+(\d+)/, 1].to_i + text[/^Non-2xx responses:\s+(\d+)/, 1].to_i
      abort "#{server[:variant]}: #{failed} requests failed:\n#{text}" unless failed.zero? && text.include?("Requests per second")
      [text[/^Time taken for tests:\s+([\d.]+)/, 1].to_f, text[/^\s+50%\s+(\d+)/, 1].to_f, text[/^\s+99%\s+(\d+)/, 1].to_f]
    end
    seconds, p50, p99 = parts.transpose
    requests = count * parts.size
    Answer.new(requests / seconds.sum, (cpu_ms(server[:pid]) - cpu_ms) / requests, p50.sum / parts.size, p99.max)
  end

  # What the process's threads have computed so far: schedstat's first figure.
  def cpu_ms(pid) = Dir["/proc/#{pid}/task/*/schedstat"].sum { |path| File.read(path).to_i } / 1e6

  def stop(servers)
    servers.each_value do |server|
      Process.kill(:TERM, server[:pid])
      Process.wait(server[:pid])
      @started.delete(server[:pid])
    end
    servers.each_value do |server|
      next unless server[:variant] == "record"

      abort "nothing was recorded:\n#{File.read(server[:log])}" if File.size(server[:recording]) < 100_000
    end
  end

  # ---- Pools.

  def work_pools(threads)
    jobs = 300 * threads
    answers = rounds do |variant|
      command = [*before(variant, "pool"), Lab::RUBY, File.join(__dir__, "support/pool_child.rb"), threads.to_s, jobs.to_s]
      environment = Lab::CLEAN.merge((variant == "raw") ? {"RUBYOPT" => raw_hook} : {})
      said = IO.popen([environment, *command, err: File::NULL], &:read)
      abort "#{variant}: the pool failed" unless $?.success?
      Answer.new(*said.split.map(&:to_f))
    end
    show("Jobs with I/O, #{threads} thread#{"s" if threads > 1}", answers, "jobs/s")
  end

  # ---- Both.

  def rounds
    answers = VARIANTS.keys.to_h { |variant| [variant, []] }
    @rounds.times do |round|
      warn "round #{round + 1} of #{@rounds}"
      VARIANTS.keys.rotate(round).each { |variant| answers[variant] << yield(variant) }
    end
    answers
  end

  # Prints the table; returns rrtrace's rate over the empty hook's.
  def show(title, answers, unit)
    rows = [[title, "× empty hook", "middle half", "× untraced", unit, "CPU ms", "× empty hook's", "p50 ms", "p99 ms"]]
    VARIANTS.each do |variant, name|
      list = answers.fetch(variant)
      low, high = Lab.quartiles(ratios(answers, variant, "raw"))
      rows << [name, format("%.3f", Lab.median(ratios(answers, variant, "raw"))), format("%.3f–%.3f", low, high),
        format("%.3f", Lab.median(ratios(answers, variant, "untraced"))), format("%.1f", Lab.median(list.map(&:rate))),
        format("%.2f", Lab.median(list.map(&:cpu_ms))),
        format("%.2f", Lab.median(list.zip(answers.fetch("raw")).map { |mine, theirs| mine.cpu_ms / theirs.cpu_ms })), *%i[p50 p99].map { |what| list.first[what] ? format("%.0f", Lab.median(list.map(&what))) : "" }]
    end
    Lab.table(rows)
    puts
    Lab.median(ratios(answers, "record", "raw"))
  end

  def ratios(answers, variant, other)
    answers.fetch(variant).zip(answers.fetch(other)).map { |mine, theirs| mine.rate / theirs.rate }
  end
end

RailsBench.new(ARGV).run
