# frozen_string_literal: true

# ruby -rPATH/raw: a program with an empty hook on every call and return.
require "bench_hooks"
BenchHooks.raw
