# frozen_string_literal: true

require "test_helper"

# The scripts in bin/. What they build is tested by everything else.
class SetupTest < Minitest::Test
  include TestHelp

  def bin(name) = File.join(ROOT, "bin", name)

  def test_bin_ruby_keeps_arguments_environment_folder_and_status
    ran = run_program(bin("ruby"), "-e", 'print ARGV.inspect, ENV["SEEN"], Dir.pwd, RbConfig.ruby; exit 3', "a b", "*",
      env: {"SEEN" => "yes"})
    assert_equal ["a b", "*"].inspect + "yes" + File.realpath(temp_path(".")) + File.read(File.join(ROOT, "build/ruby")).chomp, ran.out
    assert_equal ["", 3], [ran.err, ran.code]
  end

  def test_bin_ruby_finds_the_projects_gems_and_its_own
    ran = run_program(bin("ruby"), "-e", 'gem "rake-compiler"; gem "rbs"; print Gem.path.uniq.size == Gem.path.size')
    assert_equal "true", ran.out, ran.err
  end

  def test_bin_rrtrace_runs_this_checkout_and_the_words_ruby_and_irb_are_of_its_ruby
    assert_match(/\Arrtrace \d/, run_program(bin("rrtrace"), "--version").out)
    ran = run_program(bin("rrtrace"), "ruby", "-e", "print RbConfig.ruby, Rrtrace.started?, ENV['GEM_PATH'].inspect")
    assert_equal File.read(File.join(ROOT, "build/ruby")).chomp + "truenil", ran.out, ran.err
    ran = run_program(bin("rrtrace"), "irb", "-f", stdin: "puts [RbConfig.ruby, Rrtrace.started?].inspect\n")
    assert_includes ran.out, [File.read(File.join(ROOT, "build/ruby")).chomp, true].inspect
  end

  def test_without_a_set_up_ruby_the_scripts_say_what_to_run
    FileUtils.cp_r(File.join(ROOT, "bin"), temp_path)
    %w[ruby rrtrace].each do |name|
      ran = run_program(temp_path("bin/#{name}"), "-v")
      assert_equal [1, "", "No Ruby is set up yet: run bin/setup.\n"], [ran.code, ran.out, ran.err]
    end
    FileUtils.mkdir_p(temp_path("build"))
    write("build/ruby", "/nowhere/ruby\n")
    write("build/gems", "/nowhere/gems\n")
    assert_match(/run bin\/setup again/, run_program(temp_path("bin/ruby"), "-v").err)
  end

  def test_a_ruby_that_does_not_fit_is_named
    old = write("old-ruby", "#!/bin/sh\nexit 1\n", mode: 0o755)
    FileUtils.cp_r(File.join(ROOT, "bin"), temp_path)
    ran = run_program(temp_path("bin/setup"), env: {"RRTRACE_RUBY" => old, "RRTRACE_CACHE" => temp_path("cache")})
    assert_equal [1, "RRTRACE_RUBY=#{old} is no CRuby 3.3 or newer with its C headers.\n"], [ran.code, ran.err]
  end

  def test_bin_bench_names_its_benchmarks_and_the_wrong_one
    listed = run_program(bin("bench"))
    assert_equal 0, listed.code, listed.err
    names = Dir.glob("*.{rb,c}", base: File.join(ROOT, "bench")).map { |file| file.sub(/\.\w+\z/, "") }
    assert_equal names.sort, listed.out.lines.map { |line| line.split.first }.sort
    ran = run_program(bin("bench"), "nonesuch")
    assert_equal [1, "bench/ has no nonesuch: bin/bench lists what it has.\n"], [ran.code, ran.err]
  end
end
