# frozen_string_literal: true

require "tmpdir"
require_relative "lab"
require_relative "../../test/ruby/ring_reader"

# Events of real programs, for benchmarks in C: raw 16-byte slots of one process.
module Events
  module_function

  # Builds bench_NAME and runs it; ends this program when it fails.
  def bench(name, *arguments)
    system("cmake", "--build", "--preset", "release", "--target", "bench_#{name}", chdir: Lab::ROOT, out: $stderr, exception: true)
    system(File.join(Lab::ROOT, "build/release/bench_#{name}"), *arguments) || exit(1)
  end

  # Yields the path of a file with the events of a program that renders 1,000 pages.
  def of_pages
    Dir.mktmpdir("rrtrace-bench") do |folder|
      path = File.join(folder, "pages.events")
      File.binwrite(path, record("Pages.render(1000)"))
      yield path
    end
  end

  # Of a program that runs the code, traced; it may render pages.
  def record(code)
    reader = RingReader.new
    program = <<~RUBY
      require "rrtrace/rrtrace"
      require #{File.join(__dir__, "pages").dump}
      Pages.render(3) # what is loaded on first use is loaded
      Rrtrace::Native.join(ENV.fetch("SESSION"), 1 << 20, false, true, false)
      begin
        #{code}
      ensure
        Rrtrace::Native.leave(10_000)
      end
    RUBY
    ran = system({"SESSION" => reader.path}, Lab::RUBY, "-I", Lab::LIB, "-e", program)
    abort "the traced program failed" unless ran
    reader.finish(60).first.bytes
  end
end
