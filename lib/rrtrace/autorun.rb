# frozen_string_literal: true

# Starts tracing as soon as it is loaded: `ruby -rrrtrace/autorun app.rb`, or through RUBYOPT, as the command line does.
# Any Ruby may meet this file there, old ones and others too, so it says what it needs in a syntax that all of them read.
if RUBY_ENGINE == "ruby" && (RUBY_VERSION.split(".").map { |part| part.to_i } <=> [3, 3]) >= 0
  require "rrtrace"
  Rrtrace.autostart
else
  warn "rrtrace: needs CRuby 3.3 or newer, not #{RUBY_ENGINE} #{RUBY_VERSION}; running untraced"
end
