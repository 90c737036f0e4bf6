package shop;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.NumericDocValuesField;
import org.apache.lucene.document.StringField;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.SearcherFactory;
import org.apache.lucene.search.SearcherManager;
import org.apache.lucene.search.Sort;
import org.apache.lucene.search.SortField;
import org.apache.lucene.store.ByteBuffersDirectory;

/** All offers, in an index in memory that is read while it is written. */
final class Catalogue {
    private static final Sort BY_PRICE = new Sort(new SortField("price", SortField.Type.LONG));

    private final IndexWriter writer;
    private final SearcherManager searchers;

    Catalogue() throws IOException {
        writer = new IndexWriter(new ByteBuffersDirectory(), new IndexWriterConfig(new StandardAnalyzer()));
        searchers = new SearcherManager(writer, new SearcherFactory());
    }

    void add(Offers.Offer offer) throws IOException {
        writer.addDocument(document(offer));
    }

    void replace(Offers.Offer offer) throws IOException {
        writer.updateDocument(new Term("number", String.valueOf(offer.number())), document(offer));
    }

    void refresh() throws IOException {
        writer.commit();
        searchers.maybeRefreshBlocking();
    }

    List<String> cheapest(Query query, int most) throws IOException {
        IndexSearcher searcher = searchers.acquire();
        try {
            List<String> titles = new ArrayList<>();
            for (ScoreDoc hit : searcher.search(query, most, BY_PRICE).scoreDocs) {
                titles.add(searcher.storedFields().document(hit.doc).get("title"));
            }
            return titles;
        } finally {
            searchers.release(searcher);
        }
    }

    private static Document document(Offers.Offer offer) {
        Document document = new Document();
        document.add(new StringField("number", String.valueOf(offer.number()), Field.Store.NO));
        document.add(new TextField("title", offer.title(), Field.Store.YES));
        document.add(new TextField("text", offer.text(), Field.Store.NO));
        document.add(new NumericDocValuesField("price", offer.priceCents()));
        return document;
    }
}
