# frozen_string_literal: true

# How many bytes does an event take in a recording, and how many events a second does one core write and read back?
#
# The events are real: the extension records a program that renders 1,000 ERB pages through Rack. bench/record.c then writes
# these events over and over, each time later, and checks that what is read back is equal. With a file of events as argument
# (raw 16-byte slots) those are used instead.
require_relative "support/events"

if ARGV.any?
  Events.bench("record", File.expand_path(ARGV.first))
else
  Events.of_pages { |path| Events.bench("record", path) }
end
