package shop;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.FuzzyQuery;
import org.apache.lucene.search.PhraseQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.TermQuery;

/** Answers {@code /search?WORDS}: the cheapest offers that have these words, or words like them. */
final class SearchHandler implements HttpHandler {
    private static final int MOST_OFFERS = 20;
    private static final int MOST_WORDS = 8;

    private final Catalogue catalogue;

    SearchHandler(Catalogue catalogue) {
        this.catalogue = catalogue;
    }

    @Override
    public void handle(HttpExchange exchange) throws IOException {
        String words = exchange.getRequestURI().getQuery();
        byte[] page = page(catalogue.cheapest(query(words == null ? "" : words), MOST_OFFERS));
        exchange.sendResponseHeaders(200, page.length);
        try (OutputStream body = exchange.getResponseBody()) {
            body.write(page);
        }
    }

    private static Query query(String words) {
        BooleanQuery.Builder all = new BooleanQuery.Builder();
        String[] list = words.split("\\+", MOST_WORDS);
        for (String word : list) {
            all.add(new TermQuery(new Term("text", word)), BooleanClause.Occur.SHOULD);
        }
        all.add(new FuzzyQuery(new Term("title", list[0]), 1), BooleanClause.Occur.SHOULD);
        all.add(new PhraseQuery(2, "text", list), BooleanClause.Occur.SHOULD);
        return all.build();
    }

    private static byte[] page(List<String> titles) {
        StringBuilder page = new StringBuilder("<ol>");
        titles.forEach(title -> page.append("<li>").append(title).append("</li>"));
        return page.append("</ol>").toString().getBytes(StandardCharsets.UTF_8);
    }
}
