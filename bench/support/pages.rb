# frozen_string_literal: true

# A small web application as benchmarks want one: a list of articles, rendered by ERB with partials and escaping, behind Rack
# and the middleware that a Rails application has around it. Pages.render(1000) renders a thousand pages.
require "erb"
require "rack"

module Pages
  Article = Struct.new(:id, :title, :author, :tags, :body) do
    def slug = "#{id}-#{title.downcase.gsub(/[^a-z]+/, "-")}"

    def summary = body.split.first(12).join(" ")
  end

  ARTICLES = Array.new(60) do |i|
    Article.new(id: i, title: "Title #{i} & more", author: "Author #{i % 7}", tags: %w[ruby rack erb web].rotate(i).first(1 + i % 4),
      body: "Lorem ipsum <dolor> sit amet " * (3 + i % 5))
  end

  # One page: ten articles.
  class Page
    ERB.new(<<~HTML, trim_mode: "-").def_method(self, "render_page()")
      <html><head><title><%= h title %></title></head><body>
      <% articles.each do |article| -%>
        <%= render_article(article) %>
      <% end -%>
      <p><%= footer %></p>
      </body></html>
    HTML

    ERB.new(<<~'HTML', trim_mode: "-").def_method(self, "render_article(article)")
      <article id="a<%= article.id %>"><h2><%= link_to article.title, "/articles/#{article.slug}" %></h2>
      <p>by <%= h article.author %></p><p><%= h article.summary %></p>
      <ul><% article.tags.each do |tag| %><li><%= h tag %></li><% end %></ul></article>
    HTML

    attr_reader :title, :articles

    def initialize(title, articles)
      @title = title
      @articles = articles
    end

    def h(text) = ERB::Util.html_escape(text.to_s)

    def link_to(text, path) = %(<a href="#{h(path)}">#{h(text)}</a>)

    def footer = "#{articles.sum { |article| article.tags.size }} tags, #{articles.map(&:author).uniq.sort.join(", ")}"
  end

  APPLICATION = Rack::Builder.new {
    use Rack::Runtime
    use Rack::ContentLength
    use Rack::ConditionalGet
    use Rack::ETag
    use Rack::Head
    use Rack::MethodOverride
    map("/articles") do
      run lambda { |env|
        from = Rack::Request.new(env).params.fetch("from", "0").to_i
        page = Page.new("Articles", ARTICLES.rotate(from).first(10))
        Rack::Response.new(page.render_page, 200, {"content-type" => "text/html"}).finish
      }
    end
  }.to_app

  def self.render(count)
    browser = Rack::MockRequest.new(APPLICATION)
    count.times do |i|
      response = browser.get("/articles?from=#{i % 60}&order=newest")
      raise "no page: #{response.status}" unless response.ok? && response.body.include?("</article>")
    end
  end
end
