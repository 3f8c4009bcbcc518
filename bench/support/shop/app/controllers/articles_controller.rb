# frozen_string_literal: true

class ArticlesController < ActionController::Base
  layout "application"
  before_action :find_page, only: :index

  def index
    respond_to do |format|
      format.html
      format.json { render json: @articles.as_json(only: %i[id title price], methods: :summary) }
    end
  end

  def show
    @article = Article.find(params[:id])
    render json: @article
  end

  private

  def find_page
    @articles = Article.page(params.fetch(:page, 0).to_i % 10)
  end
end
