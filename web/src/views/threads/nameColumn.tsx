/** The column of a label's values, each with its menu. */
import { layerName } from "../chart/LayerList.tsx";
import { ValueDots } from "../chart/ValueButtons.tsx";
import type { Column } from "../ui/VirtualTable.tsx";

export function nameColumn<Row extends { name: string }>(by: string): Column<Row, "name"> {
  return {
    key: "name",
    title: by,
    hint: "Sort by name",
    number: false,
    width: { beside: "minmax(130px, 1fr)", phone: "minmax(90px, 1fr)" },
    cell: (row) => (
      <span class="thread-name">
        <bdi title={row.name}>{layerName(row.name, 0, by)}</bdi>
        <ValueDots label={by} value={row.name} name={layerName(row.name, 0, by)} />
      </span>
    ),
  };
}
