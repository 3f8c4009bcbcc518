# frozen_string_literal: true

require "test_helper"
require "rubygems/package"
require "rrtrace/cli"
require "rrtrace/doctor"

class PackageTest < Minitest::Test
  include TestHelp

  # The built gem's path.
  def build_gem
    path = temp_path("rrtrace.gem")
    Dir.chdir(ROOT) do
      Gem::DefaultUserInteraction.use_ui(Gem::SilentUI.new) do
        Gem::Package.build(Gem::Specification.load("rrtrace.gemspec"), true, false, path)
      end
    end
    path
  end

  def test_the_gem_has_all_that_its_two_programs_are_built_from_and_nothing_else
    files = Gem::Package.new(build_gem).contents
    wanted = Dir.chdir(ROOT) do
      Dir["{lib,sig}/**/*.{rb,rbs}", "wire/*.h", "visualizer/**/*.{c,h,vert,frag,glsl}", "ext/**/*.{rb,c,h}",
        "exe/rrtrace", "ext/rrtrace/depend", "CMakeLists.txt", "LICENSE", "CHANGELOG.md", "README.md"]
    end
    assert_empty wanted - files
    allowed = %r{\A(lib/.*\.rb|sig/.*\.rbs|exe/rrtrace|ext/[a-z]+/(extconf\.rb|depend|\w+\.[ch])|wire/\w+\.h|
      visualizer/[a-z]+/\w+\.(c|h|vert|frag|glsl|comp|png)|visualizer/shaders/[\w.]+|CMakeLists\.txt|LICENSE|[A-Z]+\.md)\z}x
    assert_empty files.grep_v(allowed)
    %w[exe/rrtrace ext/rrtrace/extconf.rb ext/visualizer/extconf.rb wire/event.h visualizer/app/main.c].each do |path|
      assert_includes files, path
    end
  end

  def test_the_gem_installs_and_its_command_traces_a_program
    gem_program = File.join(RbConfig::CONFIG["bindir"], "gem")
    home = temp_path("gems")
    ran = run_program(RbConfig.ruby, gem_program, "install", "--local", "--no-document", "--install-dir", home, build_gem, seconds: 400)
    assert_predicate ran.status, :success?, ran.out + ran.err
    ran = run_program(File.join(home, "bin/rrtrace"), "--no-window", RbConfig.ruby, "-e",
      "print Rrtrace.started?, ' ', Rrtrace.visualizer_path", env: {"GEM_HOME" => home, "RRTRACE_VISUALIZER" => nil})
    is_started, visualizer = ran.out.split
    assert_equal "true", is_started, ran.err
    assert visualizer.start_with?(home) && File.executable?(visualizer), visualizer
  end

  def test_the_specification_says_what_it_needs
    spec = Gem::Specification.load(File.join(ROOT, "rrtrace.gemspec"))
    assert_equal Rrtrace::VERSION, spec.version.to_s
    refute spec.required_ruby_version.satisfied_by?(Gem::Version.new("3.2.9"))
    assert spec.required_ruby_version.satisfied_by?(Gem::Version.new("3.3.0"))
    assert_equal %w[ext/rrtrace/extconf.rb ext/visualizer/extconf.rb], spec.extensions
    assert_empty spec.runtime_dependencies, "it rides in other people's bundles"
  end

  def test_the_changelog_begins_with_this_version
    assert_match(/^## #{Regexp.escape(Rrtrace::VERSION)}\b/o, File.read(File.join(ROOT, "CHANGELOG.md"))[/^## .*/])
  end

  def test_the_visualizers_version_is_the_gems
    skip "no visualizer is built" unless File.executable?(File.join(ROOT, "build/release/rrtrace-visualizer"))
    assert_includes `#{File.join(ROOT, "build/release/rrtrace-visualizer")} --version`, Rrtrace::VERSION
  end

  def test_every_file_of_lib_has_a_signature
    files = ->(folder, ending) { Dir.glob("**/*#{ending}", base: File.join(ROOT, folder)).map { |path| path.delete_suffix(ending) }.sort }
    assert_equal files["lib", ".rb"], files["sig", ".rbs"]
  end

  def test_the_signatures_name_the_methods_that_there_are
    signatures # loads RBS, or skips
    [Rrtrace, Rrtrace::Settings, Rrtrace::CLI, Rrtrace::Doctor].each do |owner|
      type = RBS::TypeName("::#{owner}")
      own = ->(methods) { methods.select { |_, method| method.defined_in == type }.keys.sort }
      singleton = own[signatures.build_singleton(type).methods] - [:new]
      assert_equal (owner.singleton_methods(false) | owner.singleton_class.private_instance_methods(false)).sort, singleton, "#{owner}."
      next unless owner.is_a?(Class)

      instance = own[signatures.build_instance(type).methods]
      assert_equal (owner.instance_methods(false) | owner.private_instance_methods(false)).sort, instance, "#{owner}#"
    end
    native = signatures.build_singleton(RBS::TypeName("::Rrtrace::Native")).methods.select { |_, method| method.defined_in.to_s == "::Rrtrace::Native" }
    assert_equal Rrtrace.native.singleton_methods(false).sort, native.keys.sort
  end

  def test_the_signatures_are_sound
    signatures.env.class_decls.each_key { |name| signatures.build_instance(name) if name.to_s.start_with?("::Rrtrace") }
  end

  private

  def signatures
    @signatures ||= begin
      require "rbs"
      loader = RBS::EnvironmentLoader.new
      loader.add(path: Pathname(File.join(ROOT, "sig")))
      RBS::DefinitionBuilder.new(env: RBS::Environment.from_loader(loader).resolve_type_names)
    rescue LoadError
      skip "this Ruby has no rbs gem"
    end
  end
end
