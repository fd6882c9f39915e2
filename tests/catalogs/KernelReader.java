// Reads a catalog-managed table as Delta Kernel does: through the catalog's Delta API, with its unpublished commits.
// Prints one line of JSON. Run as a source file: java -cp JARS KernelReader.java URL CATALOG SCHEMA TABLE [VERSION]

import io.delta.kernel.Snapshot;
import io.delta.kernel.defaults.engine.DefaultEngine;
import io.delta.kernel.unitycatalog.UCCatalogManagedClient;
import io.delta.kernel.unitycatalog.UCTableIdentifier;
import io.delta.storage.commit.TableIdentifier;
import io.delta.storage.commit.uccommitcoordinator.UCDeltaTokenBasedRestClient;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;

public class KernelReader {
  public static void main(String[] args) throws Exception {
    Configuration conf = new Configuration();
    Map<String, String> config = Map.of("uri", args[0], "auth.type", "static", "auth.token", "any-token");
    try (UCDeltaTokenBasedRestClient client = new UCDeltaTokenBasedRestClient(config, () -> conf)) {
      var table = client.loadTable(new TableIdentifier(new String[] {args[1], args[2]}, args[3]));
      Snapshot snapshot =
          new UCCatalogManagedClient(client)
              .loadSnapshot(
                  DefaultEngine.create(conf),
                  table.getTableId().toString(),
                  table.getLocation(),
                  new UCTableIdentifier(args[1], args[2], args[3]),
                  args.length > 4 ? Optional.of(Long.parseLong(args[4])) : Optional.empty(),
                  Optional.empty());
      Map<String, Object> facts = new LinkedHashMap<>();
      facts.put("version", snapshot.getVersion());
      facts.put("columns", snapshot.getSchema().fieldNames());
      facts.put("properties", new TreeMap<>(snapshot.getTableProperties()));
      facts.put("features", snapshot.getProtocol().getWriterFeatures());
      System.out.println(new com.fasterxml.jackson.databind.ObjectMapper().writeValueAsString(facts));
    }
  }
}
