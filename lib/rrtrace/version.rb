# frozen_string_literal: true

module Rrtrace
  VERSION = "0.1.0"
end
