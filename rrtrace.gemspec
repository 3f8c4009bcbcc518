# frozen_string_literal: true

require_relative "lib/rrtrace/version"

Gem::Specification.new do |spec|
  spec.name = "rrtrace"
  spec.version = Rrtrace::VERSION
  spec.authors = ["the rrtrace authors"]
  spec.summary = "Watch a running Ruby program in 3D: every call, thread, GC pause and lock hand-over, live."
  spec.description = "rrtrace shows every method call of a running CRuby program as a box on time, thread and stack depth, " \
    "with GC pauses and GVL hand-overs in the same picture, while it runs. A thin C extension writes events into shared " \
    "memory; a separate program draws them with Vulkan, or records them where there is no screen."
  spec.license = "MIT"
  spec.required_ruby_version = ">= 3.3"

  # By name, not from git: the gem is the same when it is built from an unpacked source archive.
  spec.files = Dir.chdir(__dir__) do
    Dir["{exe,lib,sig,wire,visualizer,ext}/**/*.{rb,rbs,c,h,vert,frag,comp,glsl,png}", "exe/*", "ext/*/depend",
      "CMakeLists.txt", "*.md", "LICENSE"].select { |path| File.file?(path) }.uniq
  end
  spec.bindir = "exe"
  spec.executables = ["rrtrace"]
  spec.extensions = ["ext/rrtrace/extconf.rb", "ext/visualizer/extconf.rb"]
end
