import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import one.profiler.AsyncProfiler;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.NumericDocValuesField;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.FuzzyQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.PhraseQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.Sort;
import org.apache.lucene.search.SortField;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.search.WildcardQuery;
import org.apache.lucene.store.ByteBuffersDirectory;

/**
 * Lucene indexes texts line by line and searches in them, again and again, for bench agreement; async-profiler watches
 * the seconds after the warm-up.
 *
 * <p>java Searches WARM_UP_S SECONDS OUT INTERVAL_US LIBRARY TEXT...
 */
public final class Searches {
    private static final int WORDS = 400;

    private Searches() {}

    public static void main(String[] arguments) throws Exception {
        long warmUp = Long.parseLong(arguments[0]);
        long seconds = Long.parseLong(arguments[1]);
        long intervalNs = Long.parseLong(arguments[3]) * 1000;
        List<String> lines = new ArrayList<>();
        for (String name : Arrays.asList(arguments).subList(5, arguments.length)) {
            lines.addAll(Files.readAllLines(Path.of(name), StandardCharsets.UTF_8));
        }
        AsyncProfiler profiler = AsyncProfiler.getInstance(arguments[4]);
        work(lines, warmUp);
        profiler.execute("start,event=ctimer,interval=" + intervalNs);
        System.out.println("begun");
        work(lines, seconds);
        System.out.println("ended");
        profiler.execute("stop,collapsed,ann,file=" + arguments[2]);
        while (System.in.read() >= 0) {
            // What was sampled last has its names as long as the process lives.
        }
    }

    private static void work(List<String> lines, long seconds) throws IOException {
        long end = System.nanoTime() + seconds * 1_000_000_000L;
        while (System.nanoTime() < end) {
            try (ByteBuffersDirectory directory = new ByteBuffersDirectory()) {
                index(directory, lines);
                try (DirectoryReader reader = DirectoryReader.open(directory)) {
                    search(new IndexSearcher(reader), lines, end);
                }
            }
        }
    }

    private static void index(ByteBuffersDirectory directory, List<String> lines) throws IOException {
        try (IndexWriter writer = new IndexWriter(directory, new IndexWriterConfig(new StandardAnalyzer()))) {
            for (int i = 0; i < lines.size(); i++) {
                Document document = new Document();
                document.add(new TextField("text", lines.get(i), Field.Store.YES));
                document.add(new NumericDocValuesField("line", i));
                writer.addDocument(document);
            }
        }
    }

    private static void search(IndexSearcher searcher, List<String> lines, long end) throws IOException {
        List<String> words = new ArrayList<>();
        for (String line : lines) {
            for (String word : line.toLowerCase().split("[^a-z]+")) {
                if (word.length() > 3 && words.size() < WORDS) {
                    words.add(word);
                }
            }
        }
        for (int i = 0; i + 1 < words.size() && System.nanoTime() < end; i++) {
            Term one = new Term("text", words.get(i));
            Term next = new Term("text", words.get(i + 1));
            BooleanQuery.Builder both = new BooleanQuery.Builder();
            both.add(new TermQuery(one), BooleanClause.Occur.SHOULD);
            both.add(new TermQuery(next), BooleanClause.Occur.SHOULD);
            searcher.search(both.build(), 10);
            searcher.search(new PhraseQuery(2, one.field(), one.text(), next.text()), 10);
            searcher.search(new WildcardQuery(new Term("text", "*" + one.text().substring(1) + "*")), 10);
            Query fuzzy = new FuzzyQuery(one, 1);
            searcher.search(fuzzy, 10, new Sort(new SortField("line", SortField.Type.LONG, true)));
        }
    }
}
