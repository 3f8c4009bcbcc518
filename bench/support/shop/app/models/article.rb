# frozen_string_literal: true

class Article < ActiveRecord::Base
  validates :title, presence: true
  scope :page, ->(number) { order(:id).offset(number * 20).limit(20) }

  def summary = body.split.first(8).join(" ")
end
