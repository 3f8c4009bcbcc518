# frozen_string_literal: true

# Builds the program rrtrace-visualizer with CMake when the gem is installed, and puts it beside the extension's .so. With
# the libraries for a window where they are there, else without: then it records, reports and exports.
require "mkmf"

root = File.expand_path("../..", __dir__)
cmake = find_executable("cmake")
unless cmake
  warn "rrtrace: cmake is needed to build the visualizer. Install the package cmake (3.25 or newer), then the gem again."
  exit 1
end

# Said here, before CMake says it among many other things. Without pkg-config CMake has its own word about that.
pkg_config = find_executable("pkg-config")
if pkg_config && !system(pkg_config, "--exists", "libzstd")
  warn "rrtrace: zstd's headers are needed to build the visualizer, for recordings. Install libzstd-dev (Debian, Ubuntu), " \
    "libzstd-devel (Fedora, openSUSE) or zstd (Arch, Homebrew), then the gem again."
  exit 1
end

build = File.join(Dir.pwd, "visualizer-build")
configure = [cmake, "-S", root, "-B", build, "-DCMAKE_BUILD_TYPE=Release"]
configure << "-G" << "Ninja" if find_executable("ninja")
unless system(*configure)
  warn "rrtrace: CMake could not configure the visualizer. It needs CMake 3.25 or newer, a C compiler, pkg-config and zstd's " \
    "headers; for a window also SDL2, the Vulkan loader, volk, cglm, stb, fontconfig and glslangValidator."
  exit 1
end

# What RubyGems asks of an extension's Makefile: clean (first of all, so it must not undo the configuring), all, and
# install into $(DESTDIR)$(sitearchdir).
quoted = ->(text) { %("#{text.gsub("$", "$$")}") }
File.write("Makefile", <<~MAKE)
  sitearchdir = #{RbConfig::CONFIG["sitearchdir"]}
  all:
  \t#{quoted[cmake]} --build #{quoted[build]} --target rrtrace-visualizer --parallel
  install: all
  \tmkdir -p "$(DESTDIR)$(sitearchdir)/rrtrace"
  \tcp #{quoted[File.join(build, "rrtrace-visualizer")]} "$(DESTDIR)$(sitearchdir)/rrtrace/"
  clean:
  \t#{quoted[cmake]} --build #{quoted[build]} --target clean
  distclean:
  \trm -rf #{quoted[build]}
  .PHONY: all install clean distclean
MAKE
