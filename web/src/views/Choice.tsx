/** A drop-down with its label before it. */
interface Props<T extends string> {
  label: string;
  /** Where the label alone does not say what is chosen. */
  name?: string;
  title?: string;
  value: T;
  /** Values and their titles. */
  options: readonly (readonly [T, string])[];
  onChoose: (value: T) => void;
  id?: string;
}

export function Choice<T extends string>({ label, name, title, value, options, onChoose, id }: Props<T>) {
  return (
    <label class="inline" title={title}>
      {label}
      {label !== "" && " "}
      <select
        value={value}
        aria-label={name}
        data-testid={id}
        onChange={(event) => {
          const chosen = options.find(([one]) => one === event.currentTarget.value);
          if (chosen !== undefined) onChoose(chosen[0]);
        }}
      >
        {options.map(([one, text]) => (
          <option key={one} value={one}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}
