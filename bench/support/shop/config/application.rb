# frozen_string_literal: true

# A small Rails application for bench/rails.rb: pages of articles from SQLite, as HTML through layout and partials, and as JSON.
require "rails"
require "active_record/railtie"
require "action_controller/railtie"

module Shop
  class Application < Rails::Application
    config.load_defaults 8.0
    config.root = File.expand_path("..", __dir__)
    config.eager_load = true
    config.enable_reloading = false
    config.secret_key_base = "0" * 64
    config.hosts.clear
    config.logger = Logger.new(File::NULL)
    config.log_level = :info
    config.paths["log"] = File::NULL
    config.paths["tmp"] = ENV.fetch("SHOP_FOLDER")
    config.active_record.maintain_test_schema = false
    config.action_controller.perform_caching = true

    routes.append do
      get "/articles" => "articles#index"
      get "/articles/:id" => "articles#show"
    end
  end

  # DATABASE_URL names a file of this server's own.
  def self.fill
    ActiveRecord::Schema.verbose = false
    ActiveRecord::Schema.define do
      create_table(:articles, force: true) do |table|
        table.string :title
        table.string :author
        table.text :body
        table.decimal :price, precision: 8, scale: 2
        table.timestamps
      end
    end
    rows = Array.new(200) do |i|
      {title: "Title #{i} & more", author: "Author #{i % 7}", body: "Lorem ipsum <dolor> sit amet " * (3 + i % 5), price: i * 1.25}
    end
    Article.insert_all(rows)
  end
end
