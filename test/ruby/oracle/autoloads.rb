# counts: ruby
# Files that are loaded in the middle of a method.
require "tmpdir"
def leaf = Probe.here
Dir.mktmpdir do |dir|
  File.write("#{dir}/lazy.rb", "Probe.here\nclass Lazy; def self.touch = Probe.here; touch; end\n")
  File.write("#{dir}/eager.rb", "def loaded = Probe.here\nloaded\nraise 'no' if $fail\n")
  autoload :Lazy, "#{dir}/lazy.rb"
  def reads = Lazy.touch
  reads
  def loads(f) = load(f)
  loads("#{dir}/eager.rb")
  $fail = true
  (loads("#{dir}/eager.rb") rescue leaf)
  (require("#{dir}/missing") rescue leaf) rescue leaf
rescue LoadError
  leaf
end
leaf
