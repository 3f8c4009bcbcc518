# frozen_string_literal: true

# How long does `rrtrace view` take to know how a recording of 1 GB looked, and to have read all of it?
#
# The events are real ones, as bench/record's; bench/view.c makes a session of them over and over, each time later, and records
# it. A recording may be given as argument instead; it is not removed.
require_relative "support/events"

if ARGV.any?
  Events.bench("view", File.expand_path(ARGV.first))
else
  Events.of_pages { |path| Events.bench("view", "--make", path) }
end
