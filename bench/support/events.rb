# frozen_string_literal: true

require "rbconfig"
require_relative "../../test/ruby/ring_reader"

# Events of real programs, for benchmarks: raw 16-byte slots of one process.
module Events
  module_function

  ROOT = File.expand_path("../..", __dir__)

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
    ran = system({"SESSION" => reader.path}, RbConfig.ruby, "-I", File.join(ROOT, "lib"), "-e", program)
    abort "the traced program failed" unless ran
    reader.finish(60).first.bytes
  end
end
